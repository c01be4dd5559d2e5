//! Where this user's SSH keys, agent and known hosts are, as OpenSSH finds them.

use transfer_sftp::Config;

use crate::environment::Environment;

/// Private keys in `~/.ssh`, in the order in which they are tried.
const KEY_FILES: [&str; 3] = ["id_ed25519", "id_ecdsa", "id_rsa"];

/// The configuration of SFTP for this user.
pub fn config(environment: &Environment) -> Config {
    let directory = dirs::home_dir().map(|home| home.join(".ssh"));
    let own = directory.as_ref().map(|directory| directory.join("known_hosts"));
    Config {
        known_hosts: own.into_iter().chain(["/etc/ssh/ssh_known_hosts".into()]).collect(),
        key_file: environment.ssh_key.clone(),
        usual_key_files: directory
            .iter()
            .flat_map(|directory| KEY_FILES.map(|name| directory.join(name)))
            .collect(),
        agent: environment.ssh_agent.clone(),
        user: environment.user.clone(),
        ..Config::default()
    }
}
