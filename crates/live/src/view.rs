//! A run that goes on, as the page shows it: made of what its files hold by now, when somebody asks for it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rumba_core::comparison::Summary;
use rumba_lab::store::{self, Following, ReadError};
use rumba_report::LivePage;

/// Making it anew may take this share of one core; the rest is of those that are measured.
const SHARE: f64 = 0.01;
/// More often there is nothing new.
const LEAST_PAUSE: Duration = Duration::from_secs(1);

/// The data of a page, and when there will be newer.
#[derive(Clone)]
pub struct Data {
    /// As JSON.
    pub json: Arc<str>,
    /// Before that, the same is given again.
    pub newer_in: Duration,
}

/// A run that goes on.
pub struct View {
    directory: PathBuf,
    following: Following,
    summary: Summary,
    profiles: Vec<store::Profile>,
    made: Option<(Arc<str>, Instant)>,
}

impl View {
    /// Reads what there is of a directory.
    ///
    /// # Errors
    /// When it is no results directory.
    pub fn open(directory: &Path) -> Result<Self, ReadError> {
        let following = Following::open(directory)?;
        let summary = rumba_statistics::summarise(following.results());
        let (directory, profiles) = (directory.to_owned(), store::profiles(directory, None));
        Ok(Self { directory, following, summary, profiles, made: None })
    }

    /// The page, with what was read last.
    pub fn page(&self, live: &LivePage<'_>) -> String {
        rumba_report::live_html(self.following.results(), &self.summary, &self.profiles, live)
    }

    /// What the page shows; anew if that is due, or to be had `at_once` because the run has ended.
    ///
    /// # Errors
    /// When it is no results directory any more.
    pub fn data(&mut self, live: &LivePage<'_>, at_once: bool) -> Result<Data, ReadError> {
        let began = Instant::now();
        match &self.made {
            Some((json, due)) if *due > began && !at_once => {
                return Ok(Data { json: json.clone(), newer_in: *due - began });
            }
            _ => {}
        }
        if self.following.refresh()? {
            self.summary = rumba_statistics::summarise(self.following.results());
            self.profiles = store::profiles(&self.directory, None);
        }
        let results = self.following.results();
        let json: Arc<str> = rumba_report::page_data(results, &self.summary, &self.profiles, Some(live)).into();
        let now = Instant::now();
        let newer_in = LEAST_PAUSE.max((now - began).mul_f64(1.0 / SHARE));
        self.made = Some((json.clone(), now + newer_in));
        Ok(Data { json, newer_in })
    }
}
