//! The routes. All are below the secret; every other path is not found.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::extract::{Form, Path, Query, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::from_fn_with_state;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{Html, IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use futures_util::stream::{self, Stream};
use rumba_lab::store;
use rumba_report::{HistoryNotes, LivePage};
use serde::Deserialize;

use crate::guard::{Names, guard};
use crate::library::Library;
use crate::live::Live;
use crate::server::{Content, Stop};
use crate::view::{Data, View};
use crate::{metrics, pages, past};

/// The pause of the library after it has read everything.
const REST: Duration = Duration::from_secs(5);

/// The state that the handlers share.
pub struct Served {
    pub library: Library,
    live: Option<(Arc<Live>, Stop)>,
    /// Results that other processes write and that a client is viewing.
    views: Mutex<BTreeMap<PathBuf, View>>,
}

type Answer = Result<Response, Refused>;

impl Served {
    /// The shared state, before any request.
    pub fn new(content: Content) -> Self {
        Self { library: content.library, live: content.live, views: Mutex::default() }
    }

    /// Reads the summaries of results for the list, one after the other, and never ends. During a run it reads nothing,
    /// because the host is being measured.
    pub async fn read_library(self: &Arc<Self>) {
        if self.live.is_some() {
            return std::future::pending().await;
        }
        loop {
            let served = self.clone();
            let more = tokio::task::spawn_blocking(move || served.library.read_next()).await;
            if !more.unwrap_or(false) {
                tokio::time::sleep(REST).await;
            }
        }
    }

    fn live(&self) -> Result<&Arc<Live>, Refused> {
        self.live.as_ref().map(|(live, _)| live).ok_or(Refused::Missing)
    }

    /// The name of the current run in the library, if it is in it.
    fn live_name(&self) -> Option<String> {
        let (live, _) = self.live.as_ref()?;
        Some(live.directory().file_name()?.to_string_lossy().into_owned())
    }
}

/// The reason why a request is refused.
enum Refused {
    /// It does not exist.
    Missing,
    /// It exists but cannot be shown, for this reason.
    Failed(String),
}

impl From<store::ReadError> for Refused {
    fn from(error: store::ReadError) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<std::io::Error> for Refused {
    fn from(error: std::io::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        match self {
            Refused::Missing => StatusCode::NOT_FOUND.into_response(),
            Refused::Failed(why) => {
                (StatusCode::INTERNAL_SERVER_ERROR, Html(pages::failed(&why).into_string())).into_response()
            }
        }
    }
}

/// All routes, below this secret.
pub fn router(secret: &str, served: Arc<Served>, names: Names) -> Router {
    let below = Router::new()
        .route("/", get(list))
        .route("/results/{name}", get(result))
        .route("/results/{name}/data", get(result_data))
        .route("/results/{name}/report.json", get(result_json))
        .route("/note", post(save_note))
        .route("/compare", get(compare))
        .route("/history", get(history))
        .route("/together", get(adjacent))
        .route("/live", get(live_page))
        .route("/live/data", get(live_data))
        .route("/live/events", get(live_events))
        .route("/live/stop", post(live_stop))
        .route("/metrics", get(scrape))
        .with_state(served);
    Router::new().nest(&format!("/{secret}/"), below).layer(from_fn_with_state(Arc::new(names), guard))
}

/// Runs blocking work outside of the thread that answers requests.
async fn apart(work: impl FnOnce() -> Answer + Send + 'static) -> Response {
    match tokio::task::spawn_blocking(work).await {
        Ok(answer) => answer.into_response(),
        Err(error) => Refused::Failed(error.to_string()).into_response(),
    }
}

fn page(markup: maud::Markup) -> Response {
    Html(markup.into_string()).into_response()
}

fn json(text: String) -> Response {
    ([(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))], text).into_response()
}

#[derive(Deserialize)]
struct SearchQuery {
    #[serde(default)]
    q: String,
}

async fn list(State(served): State<Arc<Served>>, Query(query): Query<SearchQuery>) -> Response {
    apart(move || {
        let entries = served.library.list()?;
        Ok(page(pages::list(&entries, &query.q, served.live_name().as_deref())))
    })
    .await
}

/// One result's page; while another process writes the result, the page updates itself.
async fn result(State(served): State<Arc<Served>>, Path(name): Path<String>) -> Response {
    apart(move || {
        let directory = served.library.directory(&name).ok_or(Refused::Missing)?;
        if store::is_being_written(&directory) {
            let view = View::open(&directory)?;
            return Ok(Html(of_growing(&name, |live| view.page(live))).into_response());
        }
        let results = store::read(&directory)?;
        let summary = rumba_statistics::summarise(&results);
        let profiles = store::profiles(&directory, None);
        Ok(Html(rumba_report::html_with(&results, &summary, &profiles)).into_response())
    })
    .await
}

async fn result_data(State(served): State<Arc<Served>>, Path(name): Path<String>) -> Response {
    apart(move || {
        let directory = served.library.directory(&name).ok_or(Refused::Missing)?;
        let goes_on = store::is_being_written(&directory);
        let mut views = served.views.lock().unwrap_or_else(PoisonError::into_inner);
        let mut view = match views.remove(&directory) {
            Some(view) => view,
            None => View::open(&directory)?,
        };
        let made = of_growing(&name, |live| view.data(live, !goes_on))?;
        // A run that has ended is not requested again.
        goes_on.then(|| views.insert(directory, view));
        Ok(growing(&made, goes_on))
    })
    .await
}

/// Calls a function with the view of a result that another process is writing.
fn of_growing<T>(name: &str, make: impl FnOnce(&LivePage<'_>) -> T) -> T {
    let data = format!("{}/data", pages::escaped(name));
    make(&LivePage { data: &data, events: None, stop: None, library: "../" })
}

/// Data of a page that updates itself, with the time of the next data and whether there will be any.
fn growing(made: &Data, goes_on: bool) -> Response {
    let newer_in_ms = made.newer_in.as_millis();
    json(format!("{{\"goes_on\":{goes_on},\"newer_in_ms\":{newer_in_ms},\"data\":{}}}", made.json))
}

async fn result_json(State(served): State<Arc<Served>>, Path(name): Path<String>) -> Response {
    apart(move || {
        let results = store::read(&served.library.directory(&name).ok_or(Refused::Missing)?)?;
        let summary = rumba_statistics::summarise(&results);
        Ok(json(rumba_report::json(&results, &summary, None).to_string()))
    })
    .await
}

#[derive(Deserialize)]
struct Noted {
    name: String,
    #[serde(default)]
    tags: String,
    #[serde(default)]
    note: String,
}

async fn save_note(State(served): State<Arc<Served>>, Form(noted): Form<Noted>) -> Response {
    apart(move || {
        served.library.directory(&noted.name).ok_or(Refused::Missing)?;
        let Noted { name, tags, note } = &noted;
        // On failure the page contains the user's input, because the browser stores no page of this server.
        Ok(match served.library.set_note(name, tags, note) {
            Ok(()) => Redirect::to("./").into_response(),
            Err(error) => {
                let page = pages::unsaved_note(name, tags, note, &error.to_string());
                (StatusCode::INTERNAL_SERVER_ERROR, Html(page.into_string())).into_response()
            }
        })
    })
    .await
}

#[derive(Deserialize)]
struct Two {
    base: Option<String>,
    other: Option<String>,
}

/// Two results: their names, and their content.
type Pair = [(String, rumba_results::results::Results); 2];

fn read_two(served: &Served, two: Two) -> Result<Option<Pair>, Refused> {
    let (Some(base), Some(other)) = (two.base, two.other) else { return Ok(None) };
    let read = |name: String| {
        let directory = served.library.directory(&name).ok_or(Refused::Missing)?;
        let results = store::read(&directory)?;
        Ok::<_, Refused>((name, results))
    };
    Ok(Some([read(base)?, read(other)?]))
}

async fn compare(State(served): State<Arc<Served>>, Query(two): Query<Two>) -> Response {
    apart(move || {
        let Some([base, other]) = read_two(&served, two)? else { return Ok(page(pages::choose_two())) };
        let comparison = rumba_statistics::compare(&base.1, &other.1);
        Ok(page(pages::compare(&base.0, &other.0, &comparison)))
    })
    .await
}

/// Two results on one page, with engines named after both.
async fn adjacent(State(served): State<Arc<Served>>, Query(two): Query<Two>) -> Response {
    apart(move || {
        let pair = read_two(&served, two)?.ok_or(Refused::Missing)?;
        let directories = pair.iter().filter_map(|(name, _)| Some((name.clone(), served.library.directory(name)?)));
        let profiles: Vec<_> =
            directories.flat_map(|(name, directory)| store::profiles(&directory, Some(&name))).collect();
        let merged = store::merge(pair.into()).ok_or(Refused::Missing)?;
        let summary = rumba_statistics::summarise(&merged);
        Ok(Html(rumba_report::html_with(&merged, &summary, &profiles)).into_response())
    })
    .await
}

#[derive(Deserialize)]
struct HistoryQuery {
    experiment: String,
    /// The search of the list.
    #[serde(default)]
    q: String,
}

/// The history of an experiment over the results that a search finds.
async fn history(State(served): State<Arc<Served>>, Query(query): Query<HistoryQuery>) -> Response {
    apart(move || {
        let entries = served.library.list()?;
        let found = Library::matching(&entries, &query.q);
        let runs = past::runs(&served.library, past::of_experiment(&found, &query.experiment));
        if runs.read.is_empty() {
            return Err(Refused::Missing);
        }
        let history = rumba_statistics::history(&runs.read, None);
        let notes = HistoryNotes { left_out: &runs.left_out, library: Some("./"), ..HistoryNotes::default() };
        Ok(Html(rumba_report::history_html(&history, &notes)).into_response())
    })
    .await
}

async fn live_page(State(served): State<Arc<Served>>) -> Response {
    apart(move || Ok(Html(served.live()?.page()).into_response())).await
}

async fn live_data(State(served): State<Arc<Served>>) -> Response {
    apart(move || {
        let live = served.live()?;
        let goes_on = !live.has_ended();
        Ok(growing(&live.data()?, goes_on))
    })
    .await
}

async fn live_events(State(served): State<Arc<Served>>, headers: HeaderMap) -> Response {
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok()?.parse().ok());
    match served.live() {
        Ok(live) => Sse::new(events(live.clone(), last.unwrap_or(0))).keep_alive(KeepAlive::default()).into_response(),
        Err(refused) => refused.into_response(),
    }
}

/// The events after this one, then each new one until the run has ended.
fn events(live: Arc<Live>, after: u64) -> impl Stream<Item = Result<Event, Infallible>> {
    let news = live.listen();
    stream::unfold((live, news, after), |(live, mut news, id)| async move {
        loop {
            // Marked before reading, so that an event in between counts as new again.
            news.mark_unchanged();
            match live.after(id) {
                Ok(next) => {
                    let event = Event::default().id(next.id.to_string()).event(next.kind).data(&*next.json);
                    return Some((Ok(event), (live, news, next.id)));
                }
                Err(true) => return None,
                Err(false) => news.changed().await.ok()?,
            }
        }
    })
}

async fn live_stop(State(served): State<Arc<Served>>) -> Response {
    match &served.live {
        Some((live, stop)) if !live.has_ended() => {
            stop();
            live.stopping();
            StatusCode::ACCEPTED.into_response()
        }
        Some(_) => StatusCode::GONE.into_response(),
        None => Refused::Missing.into_response(),
    }
}

async fn scrape(State(served): State<Arc<Served>>) -> Response {
    let as_text = |text: String| {
        ([(header::CONTENT_TYPE, HeaderValue::from_static(metrics::CONTENT_TYPE))], text).into_response()
    };
    if let Some((live, _)) = &served.live {
        return as_text(live.metrics());
    }
    apart(move || {
        let entries = served.library.list()?;
        let running = entries.iter().filter(|entry| entry.is_running).count();
        Ok(as_text(metrics::of_library(entries.len(), running)))
    })
    .await
}
