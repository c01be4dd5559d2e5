//! What strangers try, one theme per file: each test is the attack, and fails where it succeeds.

mod logins;
mod part_files;
