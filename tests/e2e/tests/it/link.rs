//! The device link: services on one machine and in networks of their own, and a device that others wrote.

use e2e::{Home, binary, python, service::KEY, setting::kills};

#[test]
fn a_device_written_from_the_text_pairs_sends_and_attacks() {
    let home = Home::new();
    let service = home.serve();
    service.wait_until_ready();
    println!("{}", python::run("clients/link_peer.py", &[&service.url(), KEY]));
}

#[test]
fn kills_at_every_step_leave_both_paired_or_neither_and_no_nonce_is_used_again() {
    let rounds = (kills() / 2).max(8).to_string();
    let svc = binary::path().display().to_string();
    println!("{}", python::run("clients/link_crashes.py", &[&svc, &rounds]));
}

#[test]
fn two_hosts_of_a_network_find_each_other_and_a_third_one_learns_nothing() {
    let svc = binary::path().display().to_string();
    println!("{}", python::run("clients/link_network.py", &[&svc]));
}
