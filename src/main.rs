//! The program `etascope`: the window without a subcommand, headless with one.

fn main() -> std::process::ExitCode {
    etascope::cli::main()
}
