//! The page of an unfinished run, made on request from the present content of its files.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rumba_lab::store::{self, Following, ReadError};
use rumba_report::LivePage;
use rumba_results::comparison::Summary;
use rustix::time::{ClockId, clock_gettime};

/// The share of one core that making the data may take, so that the rest is left for the measurement.
const SHARE: f64 = 0.01;
/// The shortest pause, because data does not change more often.
const LEAST_PAUSE: Duration = Duration::from_secs(1);

/// The data of a page, and the time of the next update.
#[derive(Clone)]
pub struct Data {
    /// The data as JSON.
    pub json: Arc<str>,
    /// The time until newer data; before that, the same data is returned.
    pub newer_in: Duration,
}

/// An unfinished run.
pub struct View {
    directory: PathBuf,
    following: Following,
    summary: Summary,
    profiles: Vec<store::Profile>,
    made: Option<(Arc<str>, Instant)>,
}

impl View {
    /// Reads the present content of a directory.
    ///
    /// # Errors
    /// The directory does not contain results.
    pub fn open(directory: &Path) -> Result<Self, ReadError> {
        let following = Following::open(directory)?;
        let summary = rumba_statistics::summarise(following.results());
        let (directory, profiles) = (directory.to_owned(), store::profiles(directory, None));
        Ok(Self { directory, following, summary, profiles, made: None })
    }

    /// The page, with the data read last.
    pub fn page(&self, live: &LivePage<'_>) -> String {
        rumba_report::live_html(self.following.results(), &self.summary, &self.profiles, live)
    }

    /// The data of the page. It is made again if that is due, or `at_once` because the run has ended.
    ///
    /// # Errors
    /// The directory does not contain results any more.
    pub fn data(&mut self, live: &LivePage<'_>, at_once: bool) -> Result<Data, ReadError> {
        let (now, began) = (Instant::now(), cpu_time());
        match &self.made {
            Some((json, due)) if *due > now && !at_once => {
                return Ok(Data { json: json.clone(), newer_in: *due - now });
            }
            _ => {}
        }
        if self.following.refresh()? {
            self.summary = rumba_statistics::summarise(self.following.results());
            self.profiles = store::profiles(&self.directory, None);
        }
        let results = self.following.results();
        let json: Arc<str> = rumba_report::page_data(results, &self.summary, &self.profiles, Some(live)).into();
        // By CPU time: on a busy host this thread mostly waits, and the page would stand still for minutes.
        let newer_in = LEAST_PAUSE.max(cpu_time().saturating_sub(began).mul_f64(1.0 / SHARE));
        self.made = Some((json.clone(), Instant::now() + newer_in));
        Ok(Data { json, newer_in })
    }
}

/// The CPU time that this thread has used.
fn cpu_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}
