//! The crate as JavaScript sees it. Refusals are an `Error` with a word for programs in `code`.

use fhe_bytecode::Raw;
use fhe_client::SCORES_WARNING;
use js_sys::{Array, Error, Object, Reflect};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;
use zeroize::Zeroizing;

use super::{Client, Facts, KeyStream, Refusal};

/// What happens once, before anything else: a bug ends in an exception that says where it is.
#[wasm_bindgen(start)]
fn start() {
    std::panic::set_hook(Box::new(|panic| wasm_bindgen::throw_str(&format!("bug: {panic}"))));
}

impl From<Refusal> for JsValue {
    fn from(refusal: Refusal) -> Self {
        let error = Error::new(&refusal.message);
        set(&error, "code", refusal.code);
        error.into()
    }
}

/// Sets a property of an object that was just made, which takes any.
fn set(object: &JsValue, name: &str, value: impl Into<JsValue>) {
    let _ = Reflect::set(object, &name.into(), &value.into());
}

/// A plain object with these properties, which a worker can send.
fn object<const N: usize>(properties: [(&str, JsValue); N]) -> JsValue {
    let object = Object::new();
    properties.into_iter().for_each(|(name, value)| set(&object, name, value));
    object.into()
}

fn list<T: Into<JsValue>>(items: impl IntoIterator<Item = T>) -> JsValue {
    items.into_iter().map(Into::into).collect::<Array>().into()
}

/// A client of one program.
#[wasm_bindgen(js_name = Client)]
pub struct WebClient(Client);

#[wasm_bindgen(js_class = Client)]
impl WebClient {
    /// A client of the program of an interface, with the secret key of a file or a new one.
    ///
    /// # Errors
    /// As [`Client::new`].
    #[wasm_bindgen(constructor)]
    pub fn new(interface: &[u8], key: Option<Vec<u8>>, insecure: bool) -> Result<Self, JsValue> {
        let key = key.map(Zeroizing::new);
        Ok(Self(Client::new(interface, key.as_ref().map(|key| &key[..]), insecure)?))
    }

    /// What there is to know of the program.
    pub fn facts(&self) -> JsValue {
        let facts: Facts = self.0.facts();
        object([
            ("program", facts.program.into()),
            ("key", facts.key.into()),
            ("model", facts.model.into()),
            ("channels", facts.channels.into()),
            ("height", facts.height.into()),
            ("width", facts.width.into()),
            ("scores", facts.n_scores.into()),
            ("labels", list(facts.labels)),
            ("logN", facts.log_n.into()),
            ("modulusBits", facts.modulus_bits.into()),
            ("keys", facts.n_keys.into()),
            ("keyFileBytes", (facts.key_file_bytes as f64).into()),
            ("inputBytes", (facts.input_bytes as f64).into()),
            ("resultBytes", (facts.result_bytes as f64).into()),
            ("unit", facts.unit.into()),
            ("predictedSeconds", facts.predicted_seconds.into()),
            ("engine", facts.engine.into()),
        ])
    }

    /// The secret key as a file.
    ///
    /// # Errors
    /// As [`Client::key_file`].
    #[wasm_bindgen(js_name = keyFile)]
    pub fn key_file(&self) -> Result<Vec<u8>, JsValue> {
        Ok(self.0.key_file()?.to_vec())
    }

    /// The evaluation keys, to be sent as they are made.
    ///
    /// # Errors
    /// As [`Client::evaluation_keys`].
    #[wasm_bindgen(js_name = evaluationKeys)]
    pub fn evaluation_keys(&self) -> Result<WebKeyStream, JsValue> {
        Ok(WebKeyStream(self.0.evaluation_keys()?))
    }

    /// Encrypts the bytes of a picture, in `[channel, y, x]` order.
    ///
    /// # Errors
    /// As [`Client::encrypt`].
    #[wasm_bindgen(js_name = encryptPixels)]
    pub fn encrypt_pixels(&mut self, pixels: &[u8]) -> Result<Vec<u8>, JsValue> {
        Ok(self.0.encrypt(Raw::Pixels(pixels))?)
    }

    /// Encrypts numbers that are the model's input already, in `[channel, y, x]` order.
    ///
    /// # Errors
    /// As [`Client::encrypt`].
    #[wasm_bindgen(js_name = encryptNumbers)]
    pub fn encrypt_numbers(&mut self, numbers: &[f64]) -> Result<Vec<u8>, JsValue> {
        Ok(self.0.encrypt(Raw::Numbers(numbers))?)
    }

    /// Decrypts a result that answers an input which this client encrypted; tells rounded scores if they are asked for.
    ///
    /// # Errors
    /// As [`Client::decrypt`].
    pub fn decrypt(&mut self, file: &[u8], scores: bool) -> Result<JsValue, JsValue> {
        let answer = self.0.decrypt(file)?;
        let told = answer.told(scores);
        let (class, label) = told.class.unzip();
        let shown = object([
            ("doubts", list(told.doubts)),
            ("class", class.map(|class| class as u32).into()),
            ("label", label.into()),
            ("confidence", told.confidence.into()),
            ("undecided", told.is_undecided.into()),
        ]);
        if let Some(scores) = told.scores {
            set(&shown, "scores", list(scores));
            set(&shown, "unit", answer.unit);
            set(&shown, "warning", SCORES_WARNING);
        }
        Ok(shown)
    }
}

/// The file of evaluation keys, in pieces of about one key.
#[wasm_bindgen(js_name = KeyStream)]
pub struct WebKeyStream(KeyStream);

#[wasm_bindgen(js_class = KeyStream)]
impl WebKeyStream {
    /// The next bytes of the file; none after its end.
    ///
    /// # Errors
    /// As [`KeyStream::next_bytes`].
    pub fn next(&mut self) -> Result<Option<Vec<u8>>, JsValue> {
        Ok(self.0.next_bytes()?)
    }
}
