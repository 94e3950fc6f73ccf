//! The build of this binary, as its build script found it.

use std::sync::LazyLock;

use rumba_results::build::Build;

/// The commit that this binary was built from.
pub fn build() -> Build {
    let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    Build {
        commit: given(env!("RUMBA_BUILD_COMMIT")),
        committed: given(env!("RUMBA_BUILD_COMMITTED")),
        dirty: !env!("RUMBA_BUILD_DIRTY").is_empty(),
        unknown: given(env!("RUMBA_BUILD_UNKNOWN")),
    }
}

/// The version text that `rumba --version` prints after the name.
pub fn version() -> &'static str {
    static VERSION: LazyLock<String> = LazyLock::new(|| format!("{} (commit {})", env!("CARGO_PKG_VERSION"), build()));
    &VERSION
}
