//! The launcher on its own, for programs that use Cuebook as a library and do not want to launch themselves.

fn main() -> std::process::ExitCode {
    cuebook_hooks::sandbox::launch_if_asked().unwrap_or(std::process::ExitCode::from(2))
}
