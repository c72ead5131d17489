//! `hoistway ctl`: shows and changes a running server.

use std::io::Write as _;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use hoistway_serve::{ClientState, ControlReply, ControlRequest, StateReport, send_request};
use hoistway_serve_options::{Change, CtlOptions, Format};

/// The scheduler changes once all in-flight requests have ended, which can take a slow disk a while.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) fn run(options: &CtlOptions) -> Result<()> {
    let send = |request: ControlRequest| -> Result<Option<StateReport>> {
        let answer = send_request(&options.control, &request, ANSWER_TIMEOUT);
        match answer.with_context(|| options.control.display().to_string())? {
            ControlReply::State(state) => Ok(Some(state)),
            ControlReply::Done => Ok(None),
            ControlReply::Refused(why) => bail!(why),
        }
    };
    match &options.change {
        Change::Show { format } => {
            let Some(state) = send(ControlRequest::Show)? else { bail!("the server returned no state") };
            let text = match format {
                Format::Table => table(&state),
                Format::Json => serde_json::to_string_pretty(&state)? + "\n",
            };
            std::io::stdout().write_all(text.as_bytes()).context("standard output")?;
        }
        Change::Reload => {
            send(ControlRequest::Reload)?;
        }
        Change::Add { export } => {
            send(ControlRequest::Add { export: export.clone() })?;
        }
        Change::Remove { name } => {
            send(ControlRequest::Remove { export: name.clone() })?;
        }
        Change::Resize { name, size } => {
            send(ControlRequest::Resize { export: name.clone(), size: size.clone() })?;
        }
        Change::Disconnect { client } => {
            send(ControlRequest::Disconnect { client: *client })?;
        }
        Change::Set { settings, disk } => {
            for setting in settings {
                let (key, value) = setting.split_once('=').with_context(|| format!("{setting}: expected KEY=VALUE"))?;
                send(ControlRequest::Set { key: key.to_owned(), value: value.to_owned(), disk: disk.clone() })?;
            }
        }
        Change::Export { name, settings } => {
            send(ControlRequest::Export { name: name.clone(), settings: settings.clone() })?;
        }
    }
    Ok(())
}

fn table(state: &StateReport) -> String {
    let mut text = String::new();
    for disk in &state.disks {
        let shares = if disk.shares { ", shares by weight" } else { "" };
        text += &format!("disk         {}\n", disk.name);
        text += &format!("scheduler    {}{shares}\nnr_requests  {}\n", disk.schedulers, disk.nr_requests);
        let active = disk.scheduler();
        text.extend(disk.tunables.iter().map(|(name, value)| format!("{active}.{name} = {value}\n")));
    }
    for export in &state.exports {
        let mode = if export.read_only { " read-only" } else { "" };
        text += &format!(
            "\nexport {:?}  {} bytes{mode} on {}\n  weight={} ioprio={} clients={}\n  {}\n  connections {}  reads {} ({} bytes)  writes {} ({} bytes)  \
             others {}  errors {}\n",
            export.name,
            export.bytes,
            export.disk,
            export.weight,
            export.ioprio,
            export.clients,
            export.limits,
            export.connections,
            export.reads,
            export.read_bytes,
            export.writes,
            export.written_bytes,
            export.others,
            export.errors,
        );
        text.extend(
            state.clients.iter().filter(|client| client.export.as_ref() == Some(&export.name)).map(client_line),
        );
    }
    let without_export: String =
        state.clients.iter().filter(|client| client.export.is_none()).map(client_line).collect();
    if !without_export.is_empty() {
        text += &format!("\nno export yet\n{without_export}");
    }
    text
}

fn client_line(client: &ClientState) -> String {
    let certificate = match client.certificate.as_slice() {
        [] => String::new(),
        names => format!("  certificate {}", names.join(" ")),
    };
    let line = format!(
        "  client {}  {}{certificate}  connected {} s  reads {} ({} bytes)  writes {} ({} bytes)  in flight {}",
        client.number,
        client.peer,
        client.connected_s,
        client.reads,
        client.read_bytes,
        client.writes,
        client.written_bytes,
        client.in_flight
    );
    crate::text::one_line(&line) + "\n"
}
