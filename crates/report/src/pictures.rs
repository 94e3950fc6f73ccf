//! The pictures that the page makes of itself when a browser opens it with [`PicturesAs::fragment`].

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

/// The format of pictures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PicturesAs {
    /// Lines and text.
    Svg,
    /// Pixels, two for each of the screen.
    Png,
}

/// A picture: the name of its file, and its content.
pub type Picture = (String, Vec<u8>);

#[derive(Deserialize)]
struct Island {
    name: String,
    content: String,
}

impl PicturesAs {
    /// The extension of its files.
    pub fn extension(self) -> &'static str {
        match self {
            PicturesAs::Svg => "svg",
            PicturesAs::Png => "png",
        }
    }

    /// The end of the page's address with which it makes its pictures.
    pub fn fragment(self) -> String {
        format!("#pictures={}", self.extension())
    }

    /// The pictures in the page's document after its scripts ran; `None` if it made none.
    pub fn read(self, document: &str) -> Option<Vec<Picture>> {
        let (_, rest) = document.split_once(r#"<script type="application/json" id="pictures">"#)?;
        let (text, _) = rest.split_once("</script>")?;
        let islands: Vec<Island> = serde_json::from_str(text).ok()?;
        let picture = |Island { name, content }: Island| {
            let safe = name.replace(|c: char| !(c.is_ascii_alphanumeric() || "-_.".contains(c)), "_");
            let content = match self {
                PicturesAs::Svg => content.into_bytes(),
                PicturesAs::Png => STANDARD.decode(content).ok()?,
            };
            Some((format!("{safe}.{}", self.extension()), content))
        };
        islands.into_iter().map(picture).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_of_a_document_have_safe_file_names() {
        let document = |content: &str| {
            format!(
                r#"<body><script type="application/json" id="pictures">[{{"name":"../x y","content":"{content}"}}]</script>"#
            )
        };
        let name = |kind: &str| format!(".._x_y.{kind}");
        assert_eq!(PicturesAs::Svg.read(&document("\\u003csvg>")), Some(vec![(name("svg"), b"<svg>".to_vec())]));
        assert_eq!(PicturesAs::Png.read(&document("aGk=")), Some(vec![(name("png"), b"hi".to_vec())]));
        assert_eq!(PicturesAs::Png.read(&document("\\u003c")), None);
        assert_eq!(PicturesAs::Svg.read("<body></body>"), None);
    }
}
