// SPDX-License-Identifier: GPL-2.0-only
//! Configuration files.

use scx_roost::policy::file::{Key, Said};

/// What an accepted file says is the same after it is written and read again. An error is one line
/// that begins with the file's name.
pub fn configuration(input: &[u8]) {
    let key = |name, flag| Key { name, flag };
    let options = [key("freeze", true), key("stats-path", false)];
    let said = match Said::parse("F", input, &options) {
        Ok(said) => said,
        Err(e) => {
            let told = e.to_string();
            assert!(
                told.starts_with("F, line ") && !told.contains('\n'),
                "{told:?}"
            );
            return;
        }
    };
    let text = said.text().expect("what was read can be written");
    let again = Said::parse("F", text.as_bytes(), &options).expect("what we write we read");
    let lines = said.lines.clone();
    assert_eq!(Said { lines, ..again }, said, "{text}");
}
