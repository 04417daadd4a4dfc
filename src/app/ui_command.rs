//! What can be done by menu or key: one list owns the text, the tooltip and the shortcut of each.

use eframe::egui::{Context, Key, KeyboardShortcut, Modifiers};

/// Something that menu, key or button can ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UiCommand {
    /// Open a photograph.
    Open,
    /// Take a photograph from the clipboard.
    Paste,
    /// Write table, sidecar and figure.
    Export,
    /// Copy the command line that computes the same.
    CopyCommand,
    /// Find, fetch and compare encoders.
    Encoders,
    /// Open a weights file of the reader's own.
    OpenWeights,
    /// Leave.
    Quit,
    /// Show or hide the random twin.
    ToggleTwin,
    /// Draw other directions.
    NewSeed,
    /// Hold the refinement, or let it go on.
    PauseResume,
    /// Close what is open, else stop the work.
    Cancel,
    /// The workspace of response profiles.
    ShowResponse,
    /// The workspace of singular spectra.
    ShowSpectrum,
    /// The workspace of edits.
    ShowEdit,
    /// A smaller or larger η by a fine step, or rank by one.
    MarkerLeft,
    /// See [`UiCommand::MarkerLeft`].
    MarkerRight,
    /// η by a decade, or rank by half.
    MarkerFarLeft,
    /// See [`UiCommand::MarkerFarLeft`].
    MarkerFarRight,
    /// η or rank as at the start.
    MarkerReset,
    /// The singular direction before or after the shown one.
    PreviousDirection,
    /// See [`UiCommand::PreviousDirection`].
    NextDirection,
    /// The most noticeable direction.
    TopDirection,
    /// The least noticeable direction.
    LeastDirection,
    /// Switch the horizontal axis between log and linear.
    ToggleXScale,
    /// Switch the vertical axis between log and linear.
    ToggleYScale,
    /// Show the whole ladder again.
    ResetPlots,
    /// Larger interface.
    ZoomIn,
    /// Smaller interface.
    ZoomOut,
    /// Interface in the system's own size.
    ZoomReset,
    /// All keys.
    Keys,
    /// The welcome.
    Welcome,
    /// All messages since the start.
    Messages,
    /// Version, sources, licences.
    About,
}

impl UiCommand {
    /// All of them, in the order of the list of keys.
    pub const ALL: [Self; 33] = [
        Self::Open,
        Self::Paste,
        Self::Export,
        Self::CopyCommand,
        Self::Encoders,
        Self::OpenWeights,
        Self::Quit,
        Self::ToggleTwin,
        Self::NewSeed,
        Self::PauseResume,
        Self::Cancel,
        Self::ShowResponse,
        Self::ShowSpectrum,
        Self::ShowEdit,
        Self::MarkerLeft,
        Self::MarkerRight,
        Self::MarkerFarLeft,
        Self::MarkerFarRight,
        Self::MarkerReset,
        Self::PreviousDirection,
        Self::NextDirection,
        Self::TopDirection,
        Self::LeastDirection,
        Self::ToggleXScale,
        Self::ToggleYScale,
        Self::ResetPlots,
        Self::ZoomIn,
        Self::ZoomOut,
        Self::ZoomReset,
        Self::Keys,
        Self::Welcome,
        Self::Messages,
        Self::About,
    ];

    /// Text in menus.
    pub fn text(self) -> &'static str {
        match self {
            Self::Open => "Open photograph…",
            Self::Paste => "Paste photograph",
            Self::Export => "Export…",
            Self::CopyCommand => "Copy as command",
            Self::Encoders => "Encoder browser…",
            Self::OpenWeights => "Open weights file…",
            Self::Quit => "Quit",
            Self::ToggleTwin => "Random twin",
            Self::NewSeed => "New seed",
            Self::PauseResume => "Pause or resume",
            Self::Cancel => "Close or cancel",
            Self::ShowResponse => "Response",
            Self::ShowSpectrum => "Spectrum",
            Self::ShowEdit => "Edit",
            Self::MarkerLeft => "η or rank smaller",
            Self::MarkerRight => "η or rank larger",
            Self::MarkerFarLeft => "η or rank much smaller",
            Self::MarkerFarRight => "η or rank much larger",
            Self::MarkerReset => "Reset η or rank",
            Self::PreviousDirection => "Previous singular direction",
            Self::NextDirection => "Next singular direction",
            Self::TopDirection => "Top singular direction",
            Self::LeastDirection => "Least singular direction",
            Self::ToggleXScale => "Horizontal axis logarithmic",
            Self::ToggleYScale => "Vertical axis logarithmic",
            Self::ResetPlots => "Whole curves",
            Self::ZoomIn => "Larger interface",
            Self::ZoomOut => "Smaller interface",
            Self::ZoomReset => "Interface in normal size",
            Self::Keys => "All keys",
            Self::Welcome => "Welcome",
            Self::Messages => "Messages",
            Self::About => "About Etascope",
        }
    }

    /// One sentence on what it does.
    pub fn tooltip(self) -> &'static str {
        match self {
            Self::Open => "Open a photograph from a file",
            Self::Paste => "Use the image or the file on the clipboard",
            Self::Export => "Write table, sidecar and figure of the curves on screen",
            Self::CopyCommand => "Copy the command line that computes the same without a window",
            Self::Encoders => "Find, fetch, use and compare encoders",
            Self::OpenWeights => "Use weights of your own: safetensors or PyTorch",
            Self::Quit => "Leave the program",
            Self::ToggleTwin => "Compare with the same architecture at random initialisation",
            Self::NewSeed => "Draw other directions, or start the search elsewhere",
            Self::PauseResume => "Hold the refinement of the curves, or let it go on",
            Self::Cancel => "Close the topmost card; with none open, stop the work",
            Self::ShowResponse => "How far features move: the response profile against η",
            Self::ShowSpectrum => "Singular values and directions of the encoder’s Jacobian",
            Self::ShowEdit => "An edit as a map between features, cut to a rank and seen again",
            Self::MarkerLeft | Self::MarkerRight => {
                "Move the marker by a fiftieth of a decade, or the rank by one"
            }
            Self::MarkerFarLeft | Self::MarkerFarRight => {
                "Move the marker by a factor of ten, or the rank by two"
            }
            Self::MarkerReset => "Put the marker back where it was at the start",
            Self::PreviousDirection => "The direction with the next larger singular value",
            Self::NextDirection => "The direction with the next smaller singular value",
            Self::TopDirection => "The distortion that the encoder notices most",
            Self::LeastDirection => "Seek a distortion that the encoder hardly notices",
            Self::ToggleXScale => "Logarithmic or linear axis of η or of the index",
            Self::ToggleYScale => "Logarithmic or linear axis of r or of singular values",
            Self::ResetPlots => "Undo zooming and panning of the plots",
            Self::ZoomIn => "Scale the whole interface up",
            Self::ZoomOut => "Scale the whole interface down",
            Self::ZoomReset => "Scale the interface as the system does",
            Self::Keys => "List all keys",
            Self::Welcome => "Show the welcome again",
            Self::Messages => "List all messages since the start",
            Self::About => "Version, sources and licences",
        }
    }

    /// Its key, if it has one.
    pub fn shortcut(self) -> Option<KeyboardShortcut> {
        let plain = |key| Some(KeyboardShortcut::new(Modifiers::NONE, key));
        let command = |key| Some(KeyboardShortcut::new(Modifiers::COMMAND, key));
        match self {
            Self::Open => plain(Key::O),
            Self::Paste => command(Key::V),
            Self::Export => plain(Key::E),
            Self::CopyCommand => Some(KeyboardShortcut::new(
                Modifiers::COMMAND.plus(Modifiers::SHIFT),
                Key::C,
            )),
            Self::Encoders => plain(Key::B),
            Self::OpenWeights => plain(Key::W),
            Self::Quit => command(Key::Q),
            Self::ToggleTwin => plain(Key::R),
            Self::NewSeed => plain(Key::N),
            Self::PauseResume => plain(Key::Space),
            Self::Cancel => plain(Key::Escape),
            Self::ShowResponse => plain(Key::Num1),
            Self::ShowSpectrum => plain(Key::Num2),
            Self::ShowEdit => plain(Key::Num3),
            Self::MarkerLeft => plain(Key::ArrowLeft),
            Self::MarkerRight => plain(Key::ArrowRight),
            Self::MarkerFarLeft => plain(Key::PageDown),
            Self::MarkerFarRight => plain(Key::PageUp),
            Self::MarkerReset => plain(Key::Home),
            Self::PreviousDirection => plain(Key::ArrowUp),
            Self::NextDirection => plain(Key::ArrowDown),
            Self::TopDirection => plain(Key::T),
            Self::LeastDirection => plain(Key::L),
            Self::ToggleXScale => plain(Key::X),
            Self::ToggleYScale => plain(Key::Y),
            Self::ResetPlots => plain(Key::F),
            Self::ZoomIn => command(Key::Plus),
            Self::ZoomOut => command(Key::Minus),
            Self::ZoomReset => command(Key::Num0),
            Self::Keys => plain(Key::Questionmark),
            Self::Welcome | Self::Messages | Self::About => None,
        }
    }

    /// Its key as text for people, empty without one.
    pub fn key_text(self, context: &Context) -> String {
        match self {
            Self::Keys => "?".to_owned(),
            Self::MarkerLeft => "←".to_owned(),
            Self::MarkerRight => "→".to_owned(),
            Self::PreviousDirection => "↑".to_owned(),
            Self::NextDirection => "↓".to_owned(),
            Self::MarkerFarLeft => "Page down".to_owned(),
            Self::MarkerFarRight => "Page up".to_owned(),
            _ => self
                .shortcut()
                .map(|s| context.format_shortcut(&s))
                .unwrap_or_default(),
        }
    }

    /// The commands whose keys were pressed, as often as they were. While a widget has the focus, keys without a modifier
    /// are the widget's; Escape then only leaves it.
    pub fn pressed(context: &Context) -> Vec<Self> {
        let focused = context.egui_wants_keyboard_input();
        let is_typing = context.text_edit_focused();
        Self::ALL
            .into_iter()
            .filter(|command| {
                // The interface is scaled by the toolkit itself.
                !matches!(command, Self::ZoomIn | Self::ZoomOut | Self::ZoomReset)
            })
            .flat_map(|command| {
                let count = match command.shortcut() {
                    // Pasting text into a field is the field's; the toolkit turns the keys into an
                    // event.
                    Some(_) if command == Self::Paste => 0,
                    Some(shortcut) if shortcut.modifiers.is_none() => {
                        let is_taken = if command.is_for_widgets() {
                            focused
                        } else {
                            is_typing
                        };
                        if is_taken {
                            0
                        } else {
                            context.input_mut(|i| presses(i, shortcut))
                        }
                    }
                    Some(shortcut) => {
                        usize::from(context.input_mut(|input| input.consume_shortcut(&shortcut)))
                    }
                    None => 0,
                };
                std::iter::repeat_n(command, count)
            })
            .collect()
    }

    /// Whether focused widgets have their own use for the key.
    fn is_for_widgets(self) -> bool {
        matches!(
            self,
            Self::PauseResume
                | Self::MarkerLeft
                | Self::MarkerRight
                | Self::MarkerFarLeft
                | Self::MarkerFarRight
                | Self::MarkerReset
                | Self::PreviousDirection
                | Self::NextDirection
        )
    }
}

/// Takes the presses of a key without modifiers: there can be several in a frame. `?` is typed with
/// Shift on most keyboards.
fn presses(input: &mut eframe::egui::InputState, shortcut: KeyboardShortcut) -> usize {
    let key = shortcut.logical_key;
    let plain = input.count_and_consume_key(shortcut.modifiers, key);
    if key == Key::Questionmark {
        plain + input.count_and_consume_key(Modifiers::SHIFT, key)
    } else {
        plain
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn no_two_commands_share_a_key_and_all_are_listed() {
        let keys: Vec<_> = UiCommand::ALL.iter().filter_map(|c| c.shortcut()).collect();
        let unique: HashSet<_> = keys.iter().map(|k| (k.modifiers, k.logical_key)).collect();
        assert_eq!(unique.len(), keys.len());
        assert_eq!(
            UiCommand::ALL.iter().collect::<HashSet<_>>().len(),
            UiCommand::ALL.len()
        );
    }
}
