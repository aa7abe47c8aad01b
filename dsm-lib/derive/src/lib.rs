//! `#[derive(Shared)]` of `dsm-lib`: how a plain struct becomes bytes of a shared variable, and comes back.
//!
//! What it makes is in `expand`; what the layout promises, in the documentation of the trait.

mod expand;

use proc_macro::TokenStream;

/// Implements `dsm_lib::Shared` for a struct whose fields are shared types themselves: numbers, `bool`, arrays of them, and
/// other such structs.
#[proc_macro_derive(Shared)]
pub fn shared(item: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(item as syn::DeriveInput);
    let made = expand::expand(&input);
    made.unwrap_or_else(|e| e.to_compile_error()).into()
}
