//! The files of the dashboard (`web/`), embedded in the program. The build script reads the list
//! `web/served.json`; building needs neither Node nor a network.

/// A file that browsers get.
#[derive(Debug)]
pub struct File {
    /// Its path below `/ui/`; empty: the page.
    pub path: &'static str,
    /// Its media type, for Content-Type.
    pub media_type: &'static str,
    /// A weak entity tag (RFC 9110 section 8.8.3), since both encodings share it: two versions of a file differ in
    /// it.
    pub tag: &'static str,
    /// Its contents.
    pub plain: &'static [u8],
    /// Its contents, compressed with gzip.
    pub gzip: &'static [u8],
}

/// Every file, in order of path.
static FILES: &[File] = &include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// The file at a path below `/ui/`.
pub fn find(path: &str) -> Option<&'static File> {
    FILES.binary_search_by(|file| file.path.cmp(path)).ok().map(|index| &FILES[index])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_found_by_its_path() {
        for file in FILES {
            assert!(std::ptr::eq(find(file.path).unwrap(), file), "{}", file.path);
        }
        assert!(find("").unwrap().media_type.starts_with("text/html"));
        for absent in ["/", "index.html", "../web/package.json", "src"] {
            assert!(find(absent).is_none(), "{absent}");
        }
    }

    /// As one transfer, all of them stay small on a slow path.
    #[test]
    fn all_files_together_are_small() {
        let bytes: usize = FILES.iter().map(|file| file.gzip.len()).sum();
        assert!(bytes < 150_000, "{bytes} bytes");
    }
}
