//! From a struct to its implementation of `Shared`, or to an error that says what cannot be shared.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Data, DeriveInput, Error, Field, Fields, Index, Member, Result, Type};

/// The implementation.
pub(crate) fn expand(input: &DeriveInput) -> Result<TokenStream> {
    let fields = fields(input)?;
    for field in fields {
        check(&field.ty)?;
    }
    let members: Vec<Member> = fields.iter().enumerate().map(member).collect();
    let types: Vec<&Type> = fields.iter().map(|f| &f.ty).collect();
    let names = members.iter().map(|member| match member {
        Member::Named(name) => name.to_string(),
        Member::Unnamed(index) => index.index.to_string(),
    });
    // Each field begins where those before it end, whatever its alignment.
    let offsets = (0..types.len()).map(|i| {
        let before = &types[..i];
        quote!(0usize #(+ <#before as ::dsm_lib::Shared>::BYTES)*)
    });
    let offsets: Vec<TokenStream> = offsets.collect();
    let name = &input.ident;
    Ok(quote! {
        #[automatically_derived]
        impl ::dsm_lib::Shared for #name {
            const BYTES: usize = 0usize #(+ <#types as ::dsm_lib::Shared>::BYTES)*;
            const FIELDS: &'static [::dsm_lib::SharedField] = &[#(
                ::dsm_lib::SharedField {
                    name: #names,
                    offset: #offsets,
                    bytes: <#types as ::dsm_lib::Shared>::BYTES,
                }
            ),*];
            fn store(&self, bytes: &mut [u8]) {
                #(<#types as ::dsm_lib::Shared>::store(
                    &self.#members,
                    &mut bytes[#offsets..][..<#types as ::dsm_lib::Shared>::BYTES],
                );)*
            }
            fn load(bytes: &[u8]) -> ::core::option::Option<Self> {
                ::core::option::Option::Some(Self {
                    #(#members: <#types as ::dsm_lib::Shared>::load(
                        &bytes[#offsets..][..<#types as ::dsm_lib::Shared>::BYTES],
                    )?,)*
                })
            }
        }
    })
}

fn member((i, field): (usize, &Field)) -> Member {
    match &field.ident {
        Some(name) => Member::Named(name.clone()),
        None => Member::Unnamed(Index::from(i)),
    }
}

fn fields(input: &DeriveInput) -> Result<&Fields> {
    let name = &input.ident;
    let refuse = |why: &str| {
        Err(Error::new_spanned(
            name,
            format!("{name} cannot be shared: {why}"),
        ))
    };
    let Data::Struct(data) = &input.data else {
        return refuse("only structs can; store which variant it is in a field, as a number");
    };
    if !input.generics.params.is_empty() {
        return refuse("it is generic, and its layout must be one; write a struct for each type");
    }
    if data.fields.is_empty() {
        return refuse("it has no fields");
    }
    Ok(&data.fields)
}

/// Refuses types that can never be shared, with what to use instead. What other types are is known to the compiler only.
fn check(ty: &Type) -> Result<()> {
    let refuse = |why: &str| {
        Err(Error::new_spanned(
            ty,
            format!("this cannot be shared: {why}"),
        ))
    };
    match ty {
        Type::Reference(_) | Type::Ptr(_) => {
            refuse("it points into the memory of this process; have the data themselves in a field")
        }
        Type::Tuple(_) => {
            refuse("a tuple has no defined layout; use a struct with `derive(Shared)`")
        }
        Type::Array(array) => check(&array.elem),
        Type::Path(path) => {
            let last = path.path.segments.last();
            let name = last.map(|segment| segment.ident.to_string());
            match name.as_deref() {
                Some("usize" | "isize") => {
                    refuse("its size depends on the machine; use `u64`, `i64` or a smaller one")
                }
                Some("u128" | "i128") => refuse("it is too large; use `[u64; 2]`"),
                Some("char") => refuse("not every number is one; use `u32`"),
                Some("String") => refuse("its length varies; use `[u8; N]`"),
                Some("Vec" | "VecDeque" | "HashMap" | "BTreeMap") => {
                    refuse("its length varies; use an array, or a variable of its own")
                }
                Some("Box" | "Rc" | "Arc") => refuse(
                    "it points into the memory of this process; have the data themselves in a field",
                ),
                Some("Option") => refuse("use a `bool` and a value"),
                _ => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use syn::parse_quote;

    use super::*;

    fn refusal(input: &DeriveInput) -> String {
        expand(input).unwrap_err().to_string()
    }

    #[test]
    fn each_unsupported_field_is_refused_with_what_to_use_instead() {
        let cases: [(Type, &str); 12] = [
            (
                parse_quote!(&'static str),
                "points into the memory of this process",
            ),
            (
                parse_quote!(*const u8),
                "points into the memory of this process",
            ),
            (
                parse_quote!(Box<f64>),
                "points into the memory of this process",
            ),
            (parse_quote!(String), "use `[u8; N]`"),
            (parse_quote!(std::vec::Vec<f64>), "use an array"),
            (parse_quote!([Vec<f64>; 3]), "use an array"),
            (parse_quote!(usize), "use `u64`"),
            (parse_quote!(isize), "use `u64`"),
            (parse_quote!(u128), "use `[u64; 2]`"),
            (parse_quote!(char), "use `u32`"),
            (parse_quote!((f64, f64)), "use a struct"),
            (parse_quote!(Option<f64>), "use a `bool` and a value"),
        ];
        for (ty, cure) in cases {
            let said = refusal(&parse_quote!(struct S { good: f64, bad: #ty }));
            assert!(said.contains(cure), "{said}");
            assert!(said.starts_with("this cannot be shared"), "{said}");
        }
    }

    #[test]
    fn what_is_not_a_plain_struct_is_refused_by_name() {
        let cases: [(DeriveInput, &str); 5] = [
            (
                parse_quote!(
                    enum Colour {
                        Red,
                        Green,
                    }
                ),
                "Colour cannot be shared: only structs can",
            ),
            (
                parse_quote!(union Bits { a: u32, b: f32 }),
                "Bits cannot be shared: only structs can",
            ),
            (
                parse_quote!(
                    struct Pair<T> {
                        a: T,
                        b: T,
                    }
                ),
                "Pair cannot be shared: it is generic",
            ),
            (
                parse_quote!(
                    struct Of<const N: usize>([f64; N]);
                ),
                "Of cannot be shared: it is generic",
            ),
            (
                parse_quote!(
                    struct Nothing;
                ),
                "Nothing cannot be shared: it has no fields",
            ),
        ];
        for (input, begin) in cases {
            let said = refusal(&input);
            assert!(said.starts_with(begin), "{said}");
        }
    }

    #[test]
    fn structs_with_named_and_numbered_fields_are_implemented() {
        let inputs: [DeriveInput; 2] = [
            parse_quote!(
                struct Body {
                    mass: f64,
                    position: [f64; 3],
                }
            ),
            parse_quote!(
                struct Point(f64, other::Point);
            ),
        ];
        for input in inputs {
            let made = expand(&input).unwrap().to_string();
            let begin = format!("impl :: dsm_lib :: Shared for {}", input.ident);
            assert!(made.contains(&begin), "{made}");
        }
    }
}
