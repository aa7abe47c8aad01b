//! Where a process listens, as long as it does.

use std::io;

use dosmos_proto::AddressBook;
use dosmos_proto::transport::Address;

/// An address published under a name; withdrawn when this is dropped, unless another process has
/// published its own under that name since.
#[derive(Debug)]
pub struct Published {
    book: AddressBook,
    name: String,
    address: Address,
}

/// An address could not be published.
#[derive(Debug, thiserror::Error)]
#[error("cannot publish the address of {name}: {source}")]
pub struct PublishError {
    /// The process.
    pub name: String,
    /// What the system said.
    pub source: io::Error,
}

impl Published {
    /// Publishes that `name` listens at `address`.
    ///
    /// # Errors
    /// If the run directory cannot be written.
    pub fn new(book: &AddressBook, name: &str, address: &Address) -> Result<Self, PublishError> {
        book.publish(name, address).map_err(|source| PublishError {
            name: name.to_owned(),
            source,
        })?;
        Ok(Self {
            book: book.clone(),
            name: name.to_owned(),
            address: address.clone(),
        })
    }

    /// The address published.
    pub fn address(&self) -> &Address {
        &self.address
    }
}

impl Drop for Published {
    fn drop(&mut self) {
        self.book.withdraw(&self.name, &self.address);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn a_duplicate_that_ends_leaves_the_address_of_the_running_process() {
        let dir = tempfile::tempdir().unwrap();
        let book = AddressBook::new(HashMap::new(), Some(dir.path()));
        let at = |port: u16| Address::Tcp(format!("127.0.0.1:{port}"));
        let first = Published::new(&book, "mp0", &at(1)).unwrap();
        let second = Published::new(&book, "mp0", &at(2)).unwrap();
        drop(first);
        assert_eq!(book.resolve("mp0"), Some(at(2)));
        drop(second);
        assert_eq!(book.resolve("mp0"), None);
    }
}
