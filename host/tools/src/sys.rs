//! What the operating system gives for the separation of a tool: namespaces, limits, signals to all that it started, and
//! the socket between a run and its supervisor. Linux only; elsewhere nothing starts.

pub(crate) use self::os::{Control, Started, confine, first_message, hand_on, is_executable, kill_group, send_report};

/// What ends a wait before its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Watch {
    End,
    EndAndRequests,
}

/// Why a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Woken {
    Ended,
    Asked,
    Late,
}

#[cfg(target_os = "linux")]
mod os {
    use std::{
        fs, io,
        io::{IoSlice, IoSliceMut},
        mem::MaybeUninit,
        net::TcpListener,
        os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd},
        path::Path,
        process::{Child, Command, Stdio},
        time::{Duration, Instant},
    };

    use rustix::{
        cmsg_space,
        event::{PollFd, PollFlags, Timespec, poll},
        io::{Errno, FdFlags, fcntl_dupfd_cloexec, fcntl_setfd},
        net::{
            AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
            SendAncillaryMessage, SendFlags, Shutdown, SocketFlags, SocketType, recv, recvmsg, send, sendmsg, shutdown,
            socket_with, socketpair,
        },
        process::{
            Pid, PidfdFlags, Resource, Rlimit, Signal, WaitOptions, WaitStatus, getegid, geteuid, getrlimit,
            kill_process, kill_process_group, nice, pidfd_open, set_child_subreaper, setrlimit, setsid, wait,
        },
        system::uname,
        thread::{CapabilitySet, UnshareFlags, remove_capability_from_bounding_set, set_no_new_privs},
    };
    use tokio::io::{Interest, unix::AsyncFd};

    use super::{Watch, Woken};
    use crate::order::{FIRST_INPUT, Isolation, Limits, MAX_INPUTS, MAX_MESSAGE_BYTES, Network, Order, REAP};

    /// The most processes and threads of a tool, where it is counted by itself: decoders start one thread per core.
    const MAX_PROCESSES: u64 = 1024;

    /// The first kernel that counts processes for each namespace of users instead of for each user.
    const COUNTS_BY_NAMESPACE: (u32, u32) = (5, 14);

    /// Limit of descriptors: inputs, outputs, libraries, and the connections of one run.
    const MAX_DESCRIPTORS: u64 = 256;

    /// Low priority: a conversion has time, and the service has clients.
    const NICENESS: i32 = 10;

    /// Where the kernel looks first when memory runs out: the service must outlive its tools.
    const KILLED_FIRST: &str = "500";

    /// Pause between looks at processes that were killed.
    const LOOK: Duration = Duration::from_millis(5);

    /// The service's end of the socket to a supervisor. Dropping it asks the supervisor to stop.
    #[derive(Debug)]
    pub(crate) struct Control(AsyncFd<OwnedFd>);

    impl Control {
        /// A socket, and the end of it that becomes a supervisor's standard input. Messages keep their boundaries.
        pub(crate) fn new() -> io::Result<(Self, Stdio)> {
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
            // The supervisor waits with `poll` and reads what is there, except for its first message.
            rustix::io::ioctl_fionbio(&theirs, false)?;
            Ok((Self(registered(ours)?), theirs.into()))
        }

        /// Sends the first message with at most [`MAX_INPUTS`] files. It fits into the socket's buffer.
        pub(crate) fn send(&self, message: &[u8], inputs: &[OwnedFd]) -> io::Result<()> {
            let inputs: Vec<_> = inputs.iter().map(AsFd::as_fd).collect();
            send_with(&self.0, message, &inputs)
        }

        /// Asks the supervisor to stop. What it reports can still be received.
        pub(crate) fn finish(&self) {
            let _was_closed = shutdown(&self.0, Shutdown::Write);
        }

        /// The next message, and the listener that came with it; none if the supervisor has ended. Cancel-safe.
        pub(crate) async fn receive(&self) -> io::Result<Option<(Vec<u8>, Option<TcpListener>)>> {
            self.0.async_io(Interest::READABLE, receive).await
        }
    }

    /// An own type of socket: the library has none that keeps messages apart and says when the other end is closed.
    #[expect(
        deprecated,
        reason = "unsound only for what does not own its descriptor; the function that follows it is `unsafe`"
    )]
    fn registered(socket: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
        AsyncFd::new(socket)
    }

    fn receive(socket: &OwnedFd) -> io::Result<Option<(Vec<u8>, Option<TcpListener>)>> {
        let (message, descriptors) = receive_with(socket)?;
        let listener = descriptors.into_iter().last().map(TcpListener::from);
        Ok((!message.is_empty()).then_some((message, listener)))
    }

    /// A message, empty if the other end is closed, with the descriptors that came with it.
    fn receive_with(socket: impl AsFd) -> io::Result<(Vec<u8>, Vec<OwnedFd>)> {
        let mut message = vec![0; MAX_MESSAGE_BYTES];
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(MAX_INPUTS))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let mut buffers = [IoSliceMut::new(&mut message)];
        let length = recvmsg(socket, &mut buffers, &mut ancillary, RecvFlags::CMSG_CLOEXEC)?.bytes;
        message.truncate(length);
        let descriptors = ancillary.drain().filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
            _ => None,
        });
        let descriptors = descriptors.flatten().collect();
        Ok((message, descriptors))
    }

    fn send_with(socket: impl AsFd, message: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(MAX_INPUTS))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(descriptors)) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        sendmsg(socket, &[IoSlice::new(message)], &mut ancillary, SendFlags::NOSIGNAL)?;
        Ok(())
    }

    /// The first message that the service sends on this process's standard input, and the files that come with it.
    pub(crate) fn first_message() -> io::Result<(String, Vec<OwnedFd>)> {
        let (message, inputs) = receive_with(io::stdin())?;
        let message = String::from_utf8(message).map_err(io::Error::other)?;
        Ok((message, inputs))
    }

    /// Gives `inputs` the numbers from [`FIRST_INPUT`] on, under which what this process starts has them.
    pub(crate) fn hand_on(inputs: Vec<OwnedFd>) -> io::Result<Vec<OwnedFd>> {
        let numbered = inputs.into_iter().zip(FIRST_INPUT..).map(|(input, number)| {
            let input = fcntl_dupfd_cloexec(input, number)?;
            if input.as_raw_fd() != number {
                return Err(io::ErrorKind::AddrInUse.into());
            }
            fcntl_setfd(&input, FdFlags::empty())?;
            Ok(input)
        });
        numbered.collect()
    }

    /// Sends a message from this process's standard input, together with `listener`.
    pub(crate) fn send_report(message: &[u8], listener: Option<&TcpListener>) -> io::Result<()> {
        let descriptors = listener.map(|listener| [listener.as_fd()]);
        send_with(io::stdin(), message, descriptors.as_ref().map_or(&[], |one| one))
    }

    /// Whether this user may run the file.
    pub(crate) fn is_executable(path: &Path) -> bool {
        rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
    }

    /// Confines this process and all that it will start: a session of its own, namespaces where they are permitted, the
    /// limits of `order`, and no privileges.
    pub(crate) fn confine(order: &Order) -> io::Result<Isolation> {
        setsid()?;
        // What a tool leaves behind becomes a child of this process, which can find and end it then.
        set_child_subreaper(Some(Pid::INIT))?;
        let entered = enter_namespaces()?;
        if entered.is_ok() && order.network == Network::Proxy {
            raise_loopback()?;
        }
        limit(&order.limits, entered == Ok(Users::Own))?;
        drop_privileges()?;
        Ok(match entered {
            Ok(_) => Isolation::Namespaces,
            Err(error) => Isolation::LimitsOnly {
                reason: error.to_string(),
            },
        })
    }

    /// Whose users a namespace knows.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    enum Users {
        /// Its own, of whom one is this user.
        Own,
        /// Those of the system.
        System,
    }

    /// The inner error means that this system does not permit it, and that nothing has changed.
    fn enter_namespaces() -> io::Result<Result<Users, Errno>> {
        let separate = UnshareFlags::NEWNET | UnshareFlags::NEWPID;
        let (user, group) = (geteuid(), getegid());
        // Files of other users stay within root's reach this way.
        if user.is_root() && unshare(separate).is_ok() {
            return Ok(Ok(Users::System));
        }
        if let Err(error) = unshare(separate | UnshareFlags::NEWUSER) {
            return Ok(Err(error));
        }
        // Files can be created only by users that the namespace knows.
        fs::write("/proc/self/setgroups", "deny")?;
        fs::write("/proc/self/uid_map", format!("{0} {0} 1", user.as_raw()))?;
        fs::write("/proc/self/gid_map", format!("{0} {0} 1", group.as_raw()))?;
        Ok(Ok(Users::Own))
    }

    #[expect(
        deprecated,
        reason = "it is unsafe only with a flag that separates descriptors, which is not among ours"
    )]
    fn unshare(flags: UnshareFlags) -> Result<(), Errno> {
        rustix::thread::unshare(flags)
    }

    /// Brings up the loopback interface of a new network, which is down: `RTM_NEWLINK` with `IFF_UP` for the first
    /// interface (rtnetlink(7)).
    fn raise_loopback() -> io::Result<()> {
        const REQUEST_WITH_ACKNOWLEDGEMENT: u16 = 1 | 4;
        const SET_LINK: u16 = 16;
        const IS_UP: u32 = 1;
        const LOOPBACK: i32 = 1;
        let mut message = Vec::with_capacity(32);
        message.extend(32_u32.to_ne_bytes());
        message.extend(SET_LINK.to_ne_bytes());
        message.extend(REQUEST_WITH_ACKNOWLEDGEMENT.to_ne_bytes());
        // Sequence number and sender; then the family, padding and type of the interface.
        message.extend([0; 12]);
        message.extend(LOOPBACK.to_ne_bytes());
        message.extend(IS_UP.to_ne_bytes());
        message.extend(IS_UP.to_ne_bytes());
        let flags = SocketFlags::CLOEXEC;
        let kernel = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)?;
        send(&kernel, &message, SendFlags::empty())?;
        let mut answer = [0; 256];
        let (length, _) = recv(&kernel, answer.as_mut_slice(), RecvFlags::empty())?;
        // After the header of sixteen bytes stands the error, negative.
        match answer[..length]
            .get(16..20)
            .and_then(|error| <[u8; 4]>::try_from(error).ok())
        {
            Some([0, 0, 0, 0]) => Ok(()),
            Some(error) => Err(io::Error::from_raw_os_error(-i32::from_ne_bytes(error))),
            None => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    fn limit(limits: &Limits, has_own_users: bool) -> io::Result<()> {
        let processes = (has_own_users && kernel() >= COUNTS_BY_NAMESPACE).then_some(MAX_PROCESSES);
        for (resource, limit) in [
            (Resource::As, limits.address_space_bytes),
            (Resource::Data, Some(limits.data_bytes)),
            (Resource::Cpu, Some(limits.cpu_seconds)),
            (Resource::Fsize, Some(limits.file_bytes)),
            (Resource::Nproc, processes),
            (Resource::Nofile, Some(MAX_DESCRIPTORS)),
            (Resource::Core, Some(0)),
        ] {
            let Some(limit) = limit else { continue };
            let maximum = getrlimit(resource).maximum.map_or(limit, |maximum| maximum.min(limit));
            let (current, maximum) = (Some(maximum), Some(maximum));
            setrlimit(resource, Rlimit { current, maximum })?;
        }
        nice(NICENESS)?;
        // Without it the kernel chooses by size alone.
        let _stays_as_it_was = fs::write("/proc/self/oom_score_adj", KILLED_FIRST);
        Ok(())
    }

    /// Version of the kernel, the first two numbers.
    fn kernel() -> (u32, u32) {
        let system = uname();
        let release = system.release().to_string_lossy();
        let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse);
        let mut next = || numbers.next().and_then(Result::ok).unwrap_or(0);
        (next(), next())
    }

    /// Nothing that is started from here on has more rights than its user; the tool of root has none but those to root's
    /// files, so that it cannot leave its namespaces.
    fn drop_privileges() -> io::Result<()> {
        set_no_new_privs(true)?;
        let of_files = CapabilitySet::CHOWN | CapabilitySet::DAC_OVERRIDE | CapabilitySet::FOWNER;
        for capability in CapabilitySet::all().difference(of_files).iter() {
            // A user without privileges may not, and an older kernel does not know it; neither has it then.
            let _is_none = remove_capability_from_bounding_set(capability);
        }
        Ok(())
    }

    /// A tool that was started.
    #[derive(Debug)]
    pub(crate) struct Started {
        /// Only for its number: it is waited for together with all other children.
        _child: Child,
        process: Pid,
        is_running: OwnedFd,
    }

    impl Started {
        /// Starts the tool in a process group of its own, with the output of this process.
        pub(crate) fn spawn(command: &mut Command) -> io::Result<Self> {
            use std::os::unix::process::CommandExt as _;

            let child = command.process_group(0).spawn()?;
            let process = Pid::from_child(&child);
            Ok(Self {
                _child: child,
                process,
                is_running: pidfd_open(process, PidfdFlags::empty())?,
            })
        }

        pub(crate) fn number(&self) -> i32 {
            self.process.as_raw_nonzero().get()
        }

        /// Waits until the tool ends or `until`.
        pub(crate) fn wait(&self, until: Instant, watch: Watch) -> Woken {
            let input = io::stdin();
            loop {
                let mut events = [
                    PollFd::new(&self.is_running, PollFlags::IN),
                    PollFd::new(&input, PollFlags::IN | PollFlags::RDHUP),
                ];
                let watched = if watch == Watch::EndAndRequests { 2 } else { 1 };
                let left = until.saturating_duration_since(Instant::now());
                let timeout = Timespec::try_from(left).ok();
                let woken = poll(&mut events[..watched], timeout.as_ref());
                if !events[0].revents().is_empty() {
                    return Woken::Ended;
                }
                if !events[1].revents().is_empty() {
                    return Woken::Asked;
                }
                if woken == Ok(0) {
                    return Woken::Late;
                }
            }
        }

        /// Asks the tool and its process group to end.
        pub(crate) fn terminate(&self) {
            let _has_ended = kill_process_group(self.process, Signal::TERM);
        }

        /// Ends the tool and all that it started. Returns the exit code and the signal of the tool.
        pub(crate) fn end(self) -> (Option<i32>, Option<i32>) {
            let (mut ended, until) = (None, Instant::now() + REAP);
            while Instant::now() < until {
                // Once its process was waited for, its number may be another's.
                if ended.is_none() {
                    let _is_empty = kill_process_group(self.process, Signal::KILL);
                }
                for child in children() {
                    let _has_ended = kill_process(child, Signal::KILL);
                }
                match wait(WaitOptions::NOHANG) {
                    Ok(Some((process, status))) if process == self.process => ended = Some(status),
                    Ok(Some(_)) | Err(Errno::INTR) => {}
                    Ok(None) => {
                        let _ = poll(&mut [], Timespec::try_from(LOOK).ok().as_ref());
                    }
                    Err(_none_left) => break,
                }
            }
            let code = ended.and_then(WaitStatus::exit_status);
            let signal = ended.and_then(WaitStatus::terminating_signal);
            (code, signal)
        }
    }

    /// The children of this process, with those that it inherited.
    fn children() -> Vec<Pid> {
        let listed = fs::read_to_string("/proc/thread-self/children").unwrap_or_default();
        let numbers = listed.split_whitespace().filter_map(|number| number.parse().ok());
        numbers.filter_map(Pid::from_raw).collect()
    }

    /// Ends a tool whose supervisor has died. Where it has a table of processes of its own, all that it started ends with
    /// it.
    pub(crate) fn kill_group(process: i32) {
        if let Some(process) = Pid::from_raw(process).filter(|process| !process.is_init()) {
            let _has_ended = kill_process_group(process, Signal::KILL);
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod os {
    use std::{
        io,
        net::TcpListener,
        os::fd::OwnedFd,
        path::Path,
        process::{Command, Stdio},
        time::Instant,
    };

    use super::{Watch, Woken};
    use crate::order::{Isolation, Order};

    fn unsupported<T>() -> io::Result<T> {
        Err(io::ErrorKind::Unsupported.into())
    }

    #[derive(Debug)]
    pub(crate) struct Control;

    impl Control {
        pub(crate) fn new() -> io::Result<(Self, Stdio)> {
            unsupported()
        }

        pub(crate) fn send(&self, _message: &[u8], _inputs: &[OwnedFd]) -> io::Result<()> {
            unsupported()
        }

        pub(crate) fn finish(&self) {}

        #[expect(clippy::unused_async, reason = "it waits where it is supported")]
        pub(crate) async fn receive(&self) -> io::Result<Option<(Vec<u8>, Option<TcpListener>)>> {
            unsupported()
        }
    }

    pub(crate) fn first_message() -> io::Result<(String, Vec<OwnedFd>)> {
        unsupported()
    }

    pub(crate) fn hand_on(_inputs: Vec<OwnedFd>) -> io::Result<Vec<OwnedFd>> {
        unsupported()
    }

    pub(crate) fn send_report(_message: &[u8], _listener: Option<&TcpListener>) -> io::Result<()> {
        unsupported()
    }

    pub(crate) fn is_executable(_path: &Path) -> bool {
        true
    }

    pub(crate) fn confine(_order: &Order) -> io::Result<Isolation> {
        unsupported()
    }

    #[derive(Debug)]
    pub(crate) enum Started {}

    impl Started {
        pub(crate) fn spawn(_command: &mut Command) -> io::Result<Self> {
            unsupported()
        }

        pub(crate) fn number(&self) -> i32 {
            match *self {}
        }

        pub(crate) fn wait(&self, _until: Instant, _watch: Watch) -> Woken {
            match *self {}
        }

        pub(crate) fn terminate(&self) {
            match *self {}
        }

        pub(crate) fn end(self) -> (Option<i32>, Option<i32>) {
            match self {}
        }
    }

    pub(crate) fn kill_group(_process: i32) {}
}
