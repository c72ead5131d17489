//! A stream with a deadline for all of its reads or writes together.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFlags, Timespec};

use crate::ground::stop::Stop;

/// A stream that blocks until a deadline, or until the server is stopped.
pub(crate) struct TimedStream<'a, S> {
    stream: &'a S,
    deadline: Instant,
    stop: Option<&'a Stop>,
}

impl<'a, S: AsFd> TimedStream<'a, S> {
    /// The stream must be non-blocking.
    pub(crate) fn new(stream: &'a S, timeout: Duration, stop: Option<&'a Stop>) -> TimedStream<'a, S> {
        TimedStream::until(stream, Instant::now() + timeout, stop)
    }

    /// The same with a deadline that other steps share.
    pub(crate) fn until(stream: &'a S, deadline: Instant, stop: Option<&'a Stop>) -> TimedStream<'a, S> {
        TimedStream { stream, deadline, stop }
    }

    fn wait(&self, events: PollFlags) -> io::Result<()> {
        let remaining = self.deadline.saturating_duration_since(Instant::now());
        let is_stopped = self.stop.is_some_and(Stop::is_stopped);
        if remaining.is_zero() || is_stopped {
            return Err(ErrorKind::TimedOut.into());
        }
        let remaining = Timespec::try_from(remaining).map_err(io::Error::other)?;
        Stop::wait(self.stop, self.stream.as_fd(), events, Some(&remaining));
        Ok(())
    }

    fn until_deadline(&self, events: PollFlags, mut step: impl FnMut() -> io::Result<usize>) -> io::Result<usize> {
        loop {
            // Checked before each step: a peer that sends a byte now and then never blocks for long.
            if Instant::now() >= self.deadline {
                return Err(ErrorKind::TimedOut.into());
            }
            match step() {
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.wait(events)?,
                done => return done,
            }
        }
    }
}

impl<'a, S: AsFd> Read for TimedStream<'a, S>
where
    &'a S: Read,
{
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut stream = self.stream;
        self.until_deadline(PollFlags::IN, || stream.read(buffer))
    }
}

impl<'a, S: AsFd> Write for TimedStream<'a, S>
where
    &'a S: Write,
{
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut stream = self.stream;
        self.until_deadline(PollFlags::OUT, || stream.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut stream = self.stream;
        stream.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;
    use std::thread;

    use super::*;

    fn pair() -> (UnixStream, UnixStream) {
        let (near, far) = UnixStream::pair().unwrap();
        near.set_nonblocking(true).unwrap();
        (near, far)
    }

    #[test]
    fn a_dripping_sender_gets_no_more_time_than_a_silent_one() {
        let (near, far) = pair();
        let drip = thread::spawn(move || {
            let mut far = &far;
            while far.write_all(b"x").is_ok() {
                thread::sleep(Duration::from_millis(10));
            }
        });
        let began = Instant::now();
        let heard = TimedStream::new(&near, Duration::from_millis(200), None).read_to_end(&mut Vec::new());
        assert_eq!(heard.unwrap_err().kind(), ErrorKind::TimedOut);
        assert!((200..5000).contains(&began.elapsed().as_millis()), "{:?}", began.elapsed());
        drop(near);
        drip.join().unwrap();
    }

    #[test]
    fn a_write_to_a_peer_that_does_not_read_times_out() {
        let (near, _far) = pair();
        let said = TimedStream::new(&near, Duration::from_millis(50), None).write_all(&vec![0; 16 << 20]);
        assert_eq!(said.unwrap_err().kind(), ErrorKind::TimedOut);
    }

    #[test]
    fn stopping_the_server_ends_a_blocked_read() {
        let (near, _far) = pair();
        let stop = Stop::new().unwrap();
        let ends = stop.clone();
        let ending = thread::spawn(move || {
            thread::sleep(Duration::from_millis(50));
            ends.stop();
        });
        let began = Instant::now();
        let heard = TimedStream::new(&near, Duration::from_secs(3600), Some(&stop)).read(&mut [0]);
        assert!(heard.is_err() && began.elapsed() < Duration::from_secs(60));
        ending.join().unwrap();
    }
}
