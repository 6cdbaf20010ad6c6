//! Several files and folders as one list of samples with names.
//!
//! A folder stands for the pictures in it, in the order of their names. Where a file `labels.csv` lies beside pictures, with a
//! name and a class a row, it tells their true classes.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use fhe_bytecode::text::harmless;
use fhe_bytecode::{Preprocessing, Raw};

use crate::picture::ENDINGS;
use crate::samples::Samples;
use crate::{Fit, ImageShape, InputError, InputErrorKind, bytes, has_extension, read_samples_fitted};

/// The file that tells the classes of the pictures beside it.
const LABELS: &str = "labels.csv";

/// Samples of several files.
#[derive(Debug, Clone, Default)]
pub struct Collection {
    files: Vec<File>,
    /// File and sample in it, for every sample.
    index: Vec<(usize, usize)>,
}

#[derive(Debug, Clone)]
struct File {
    path: PathBuf,
    samples: Samples,
    /// The class of its only sample, where a list beside it tells.
    label: Option<usize>,
}

impl Collection {
    /// Reads files and the pictures of folders.
    ///
    /// # Errors
    /// If one of them cannot be read or does not fit the model, or a folder has no pictures.
    pub fn read(paths: &[PathBuf], shape: ImageShape, fit: Fit) -> Result<Self, InputError> {
        let mut found = Self::default();
        let mut beside = Beside::default();
        for path in files(paths)? {
            let samples = read_samples_fitted(&path, shape, fit)?;
            let label = beside.label(&path)?;
            let at = found.files.len();
            found.index.extend((0..samples.len()).map(|sample| (at, sample)));
            found.files.push(File { path, samples, label });
        }
        Ok(found)
    }

    /// Number of samples.
    #[must_use]
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Whether there is no sample at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// Keeps the first samples only.
    pub fn truncate(&mut self, len: usize) {
        self.index.truncate(len);
    }

    /// What a sample is called: its file, and its number there if the file has several.
    ///
    /// # Panics
    /// If there is no such sample; as for a slice.
    #[must_use]
    pub fn name(&self, index: usize) -> String {
        let (file, sample) = self.index[index];
        let File { path, samples, .. } = &self.files[file];
        match samples.len() {
            1 => harmless(&file_name(path)),
            _ => format!("{}#{sample}", harmless(&file_name(path))),
        }
    }

    /// The true class of a sample, if its file or a list beside it tells it.
    ///
    /// # Panics
    /// If there is no such sample.
    #[must_use]
    pub fn label(&self, index: usize) -> Option<usize> {
        let (file, sample) = self.index[index];
        self.files[file].samples.label(sample).or(self.files[file].label)
    }

    /// A sample as its file has it.
    ///
    /// # Errors
    /// If there is no such sample.
    pub fn raw(&self, index: usize) -> Result<Raw<'_>, InputErrorKind> {
        let n_samples = self.len();
        let &(file, sample) =
            self.index.get(index).ok_or(InputErrorKind::NoSuchSample { index, n_samples })?;
        self.files[file].samples.raw(sample)
    }

    /// A sample as model input in `[channel, y, x]` order.
    ///
    /// # Errors
    /// If there is no such sample, or the preprocessing is for another number of channels.
    pub fn tensor(&self, index: usize, preprocessing: &Preprocessing) -> Result<Vec<f64>, InputError> {
        let n_samples = self.len();
        let Some(&(file, sample)) = self.index.get(index) else {
            return Err(InputError {
                path: PathBuf::new(),
                kind: InputErrorKind::NoSuchSample { index, n_samples },
            });
        };
        let File { path, samples, .. } = &self.files[file];
        samples.tensor(sample, preprocessing).map_err(|kind| InputError { path: path.clone(), kind })
    }
}

/// True classes of pictures, from the lists beside them; every list is read once.
#[derive(Debug, Default)]
pub struct Beside {
    lists: HashMap<PathBuf, HashMap<String, usize>>,
}

impl Beside {
    /// The class of a picture, if a list beside it tells it; none for a file that is no picture.
    ///
    /// # Errors
    /// If there is a list that cannot be read.
    pub fn label(&mut self, path: &Path) -> Result<Option<usize>, InputError> {
        if !has_extension(path, &ENDINGS) {
            return Ok(None);
        }
        let folder = path.parent().unwrap_or(Path::new("")).to_path_buf();
        if !self.lists.contains_key(&folder) {
            self.lists.insert(folder.clone(), labels_beside(&folder)?);
        }
        Ok(self.lists[&folder].get(&file_name(path)).copied())
    }
}

/// The files that paths stand for: themselves, or the pictures of a folder in the order of their names.
///
/// # Errors
/// If a folder cannot be read or has no pictures.
pub fn files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, InputError> {
    let mut found = Vec::new();
    for path in paths {
        match path.is_dir() {
            false => found.push(path.clone()),
            true => found.extend(pictures(path).map_err(|kind| InputError { path: path.clone(), kind })?),
        }
    }
    Ok(found)
}

fn pictures(folder: &Path) -> Result<Vec<PathBuf>, InputErrorKind> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if has_extension(&path, &ENDINGS) {
            found.push(path);
        }
    }
    found.sort();
    if found.is_empty() { Err(InputErrorKind::NoPictures) } else { Ok(found) }
}

/// Classes by file name, from the list in a folder; nothing where there is none.
fn labels_beside(folder: &Path) -> Result<HashMap<String, usize>, InputError> {
    let path = folder.join(LABELS);
    if !path.is_file() {
        return Ok(HashMap::new());
    }
    let read = || -> Result<_, InputErrorKind> { parse_labels(&bytes::read_file(&path)?) };
    read().map_err(|kind| InputError { path: path.clone(), kind })
}

/// Columns that hold names of files, and columns that hold classes, as people call them.
const NAMES: [&str; 6] = ["file", "filename", "file_name", "name", "image", "path"];
const CLASSES: [&str; 5] = ["label", "class", "target", "y", "truth"];

/// Rows of a name and a class, or of more columns with a heading that tells which; a first row without a class is a heading.
fn parse_labels(data: &[u8]) -> Result<HashMap<String, usize>, InputErrorKind> {
    let damaged = |reason: String| InputErrorKind::damaged("CSV", reason);
    let text = std::str::from_utf8(data).map_err(|e| damaged(e.to_string()))?;
    let lines = || text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let heading: Vec<_> = lines().next().map_or_else(Vec::new, |(_, line)| fields(line).collect());
    let is_wide = heading.len() > 2;
    let column = |known: &[&str], fits: &dyn Fn(usize) -> bool| {
        let is_known = |i: &usize| known.iter().any(|name| heading[*i].eq_ignore_ascii_case(name));
        (0..heading.len()).find(|i| is_known(i) && fits(*i))
    };
    // Of a number and a word for the class, the number is what is wanted.
    let is_number = |i: usize| {
        let cell = lines().nth(1).and_then(|(_, line)| fields(line).nth(i));
        cell.is_some_and(|cell| cell.parse::<usize>().is_ok())
    };
    let (names, classes) = (column(&NAMES, &|_| true).unwrap_or(0), column(&CLASSES, &is_number));
    let classes = match (is_wide, classes) {
        (true, None) => return Err(damaged("no column of numbers is called label or class".to_owned())),
        (_, classes) => classes.unwrap_or(1),
    };
    let mut found = HashMap::new();
    for (line_no, line) in lines() {
        let row = match is_wide {
            true => fields(line).nth(names).zip(fields(line).nth(classes)),
            // The name may have a comma of its own.
            false => line.rsplit_once(SEPARATORS).map(|(name, class)| (plain(name), plain(class))),
        };
        match row.map(|(name, class)| (name, class.parse())) {
            Some((name, Ok(class))) => drop(found.insert(name.to_owned(), class)),
            _ if line_no == 0 => {}
            _ => return Err(damaged(format!("line {} is not a name and a class", line_no + 1))),
        }
    }
    Ok(found)
}

const SEPARATORS: [char; 3] = [',', ';', '\t'];

fn fields(line: &str) -> impl Iterator<Item = &str> {
    line.split(SEPARATORS).map(plain)
}

/// A cell without what is around it.
fn plain(cell: &str) -> &str {
    cell.trim().trim_matches('"')
}

fn file_name(path: &Path) -> String {
    path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_labels_have_names_and_classes() {
        let found = parse_labels(b"file,label\na.png,3\n\"b c.png\",0\n").unwrap();
        assert_eq!((found["a.png"], found["b c.png"], found.len()), (3, 0, 2));
        assert!(parse_labels(b"file,label\na.png,cat\n").is_err());
    }

    #[test]
    fn lists_of_more_columns_tell_which_are_meant() {
        let rows = "000.png,cat,3,7\n001.png,ship,8,9\n";
        let found = parse_labels(format!("file,class,label,index\n{rows}").as_bytes()).unwrap();
        assert_eq!((found["000.png"], found["001.png"], found.len()), (3, 8, 2));
        let found = parse_labels(b"index;target;image\n5;2;a.png\n").unwrap();
        assert_eq!((found["a.png"], found.len()), (2, 1));
        assert!(parse_labels(format!("a,b,c,d\n{rows}").as_bytes()).is_err());
        assert!(parse_labels(rows.as_bytes()).is_err());
        assert!(parse_labels(b"file,label,x\na.png,1,2\nb.png\n").is_err());
    }

    #[test]
    fn folders_are_pictures_in_order_with_names_and_classes() {
        let folder = tempfile_folder("collection");
        for name in ["b", "a"] {
            let mut picture = image::GrayImage::new(2, 2);
            picture.put_pixel(0, 0, image::Luma([if name == "a" { 255 } else { 0 }]));
            picture.save(folder.join(format!("{name}.png"))).unwrap();
        }
        std::fs::write(folder.join(LABELS), "file,label\nb.png,1\n").unwrap();
        std::fs::write(folder.join("two.csv"), "1,2,3,4\n5,6,7,8\n").unwrap();
        let paths = [folder.clone(), folder.join("two.csv")];
        let found = Collection::read(&paths, ImageShape::new(1, 2, 2), Fit::Exact).unwrap();
        let names: Vec<String> = (0..found.len()).map(|i| found.name(i)).collect();
        assert_eq!(names, ["a.png", "b.png", "two.csv#0", "two.csv#1"]);
        assert_eq!([found.label(0), found.label(1), found.label(2)], [None, Some(1), None]);
        assert_eq!(found.tensor(0, &Preprocessing::default()).unwrap(), [1.0, 0.0, 0.0, 0.0]);
        let wrong = Collection::read(&paths[..1], ImageShape::new(1, 3, 3), Fit::Exact).unwrap_err();
        assert!(matches!(wrong.kind, InputErrorKind::WrongSize { width: 2, height: 2, .. }));
        let fitted = Collection::read(&paths[..1], ImageShape::new(1, 3, 3), Fit::Resize).unwrap();
        assert_eq!(fitted.tensor(1, &Preprocessing::default()).unwrap().len(), 9);
        std::fs::remove_dir_all(folder).unwrap();
    }

    fn tempfile_folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("fhe-input-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }
}
