// SPDX-License-Identifier: GPL-2.0-only
//! Errors that carry the errno of an answer on the wire, or another exit status than 1.

/// An error with the errno for the client.
#[derive(Debug)]
pub struct Refused(pub i32, pub String);

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str(&self.1)
    }
}

impl std::error::Error for Refused {}

/// An error with this errno and text for the client.
pub fn refuse(errno: i32, text: impl Into<String>) -> anyhow::Error {
    Refused(errno, text.into()).into()
}

/// Configuration files with which nothing can be started.
#[derive(Debug)]
pub struct BadConfig(pub anyhow::Error);

/// A command line that says what does not exist, or contradicts itself.
#[derive(Debug)]
pub struct BadUsage(pub anyhow::Error);

impl std::fmt::Display for BadConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "{:#}", self.0)
    }
}

impl std::fmt::Display for BadUsage {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "{:#}", self.0)
    }
}

impl std::error::Error for BadConfig {}
impl std::error::Error for BadUsage {}
