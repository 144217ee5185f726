//! Draws the live view on a screen.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style, Stylize};
use ratatui::text::Line;
use ratatui::widgets::{Block, Cell, Row, Table};

use crate::client::top::rows::{GangRow, NodeRow, QUEUE_TITLES, Rows};

/// Draws everything.
pub(crate) fn draw(frame: &mut Frame<'_>, rows: &Rows, url: &str, lost: bool, scroll: usize) {
    let [top, middle, gangs, bottom] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(middle_height(rows, frame.area().height)),
        Constraint::Min(4),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    frame.render_widget(Line::from(rows.heading.as_str()).bold(), top);
    let [left, right] =
        Layout::horizontal([Constraint::Percentage(58), Constraint::Percentage(42)]).areas(middle);
    draw_nodes(frame, &rows.nodes, left);
    draw_queues(frame, &rows.queues, right);
    draw_gangs(frame, &rows.gangs, gangs, scroll);
    let keys = Line::from(format!("arrows scroll, q quits; {url}")).dim();
    let lost_line = Line::from("the connection is lost; reconnecting").red();
    frame.render_widget(if lost { lost_line } else { keys }, bottom);
}

/// Nodes and queues take the rows that they need, and at most half of the screen.
fn middle_height(rows: &Rows, screen: u16) -> u16 {
    let most = rows.nodes.len().max(rows.queues.len());
    // Two for the frame and one for the titles.
    u16::try_from(most).unwrap_or(u16::MAX).saturating_add(3).clamp(4, (screen / 2).max(4))
}

fn framed<'a>(title: &'a str, shown: usize, all: usize) -> Block<'a> {
    let title = match all > shown {
        true => format!(" {title}: {shown} of {all} "),
        false => format!(" {title}: {all} "),
    };
    Block::bordered().title(title).border_style(Style::new().dim())
}

/// Rows that fit between the frame and the titles.
fn room(area: Rect) -> usize {
    usize::from(area.height.saturating_sub(3))
}

fn draw_nodes(frame: &mut Frame<'_>, nodes: &[NodeRow], area: Rect) {
    let row = |node: &NodeRow| {
        let boxes = Style::new().fg(if node.ready { Color::Green } else { Color::DarkGray });
        let cells = [
            Cell::new(node.name.clone()),
            Cell::new(node.kind.clone()),
            Cell::new(node.boxes.clone()).style(boxes),
            Cell::new(match node.ready {
                true => node.gangs.clone(),
                false => "not ready".to_owned(),
            }),
        ];
        Row::new(cells)
    };
    let widths = [
        Constraint::Length(widest(nodes.iter().map(|node| &*node.name), 28)),
        Constraint::Length(widest(nodes.iter().map(|node| &*node.kind), 14)),
        Constraint::Length(widest(nodes.iter().map(|node| &*node.boxes), 16)),
        Constraint::Fill(1),
    ];
    let shown = nodes.len().min(room(area));
    let table = Table::new(nodes.iter().take(shown).map(row), widths)
        .header(Row::new(["NAME", "GPUS", "IN USE", "GANGS"]).bold())
        .block(framed("nodes", shown, nodes.len()));
    frame.render_widget(table, area);
}

fn draw_queues(frame: &mut Frame<'_>, queues: &[Vec<String>], area: Rect) {
    let names = widest(queues.iter().map(|queue| &*queue[0]), 20);
    let widths = [
        Constraint::Length(names),
        Constraint::Length(10),
        Constraint::Length(6),
        Constraint::Length(7),
        Constraint::Length(7),
    ];
    let shown = queues.len().min(room(area));
    let table = Table::new(queues.iter().take(shown).map(|cells| Row::new(cells.clone())), widths)
        .header(Row::new(QUEUE_TITLES).bold())
        .block(framed("queues", shown, queues.len()));
    frame.render_widget(table, area);
}

fn draw_gangs(frame: &mut Frame<'_>, gangs: &[GangRow], area: Rect, scroll: usize) {
    let row = |gang: &GangRow| {
        let phase = Style::new().fg(colour(&gang.phase));
        Row::new([
            Cell::new(gang.name.clone()),
            Cell::new(gang.phase.clone()).style(phase),
            Cell::new(bar(&gang.ready)),
            Cell::new(gang.queue.clone()),
            Cell::new(gang.time.clone()),
            Cell::new(gang.message.clone()),
        ])
    };
    let widths = [
        Constraint::Length(widest(gangs.iter().map(|gang| &*gang.name), 36)),
        Constraint::Length(12),
        Constraint::Length(19),
        Constraint::Length(widest(gangs.iter().map(|gang| &*gang.queue), 16)),
        Constraint::Length(11),
        Constraint::Fill(1),
    ];
    let shown = gangs.len().saturating_sub(scroll).min(room(area));
    let table = Table::new(gangs.iter().skip(scroll).take(shown).map(row), widths)
        .header(Row::new(["NAME", "PHASE", "READY", "QUEUE", "TIME", "MESSAGE"]).bold())
        .block(framed("gangs", shown, gangs.len()));
    frame.render_widget(table, area);
}

/// `3/8` with a bar of ten cells before it.
fn bar(ready: &str) -> String {
    let parts = ready.split_once('/');
    let numbers = parts.and_then(|(a, b)| Some((a.parse::<u64>().ok()?, b.parse::<u64>().ok()?)));
    let Some((some, all)) = numbers.filter(|(_, all)| *all > 0) else { return ready.to_owned() };
    let full = usize::try_from((some * 10 / all).min(10)).unwrap_or(10);
    format!("{}{} {ready}", "█".repeat(full), "░".repeat(10 - full))
}

fn colour(phase: &str) -> Color {
    match phase {
        "Running" | "Succeeded" => Color::Green,
        "Provisioning" | "Admitted" => Color::Cyan,
        "Failed" | "Infeasible" => Color::Red,
        "Stopping" | "Held" | "Cancelled" => Color::Yellow,
        _ => Color::Reset,
    }
}

/// The width of the widest text, at least that of a title and at most `most`.
fn widest<'a>(texts: impl Iterator<Item = &'a str>, most: usize) -> u16 {
    let widest = texts.map(console::measure_text_width).max().unwrap_or(0);
    u16::try_from(widest.clamp(6, most)).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests {
    use muster_core::time::Time;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;
    use crate::client::top::rows::tests::view;

    fn screen(width: u16, height: u16, lost: bool) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        let rows = Rows::of(&view(), Time(60_000));
        terminal.draw(|frame| draw(frame, &rows, "http://here", lost, 0)).unwrap();
        let buffer = terminal.backend().buffer().clone();
        let line = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>();
        (0..height).map(line).collect()
    }

    #[test]
    fn screen_shows_nodes_queues_and_gangs() {
        let lines = screen(120, 20, false);
        let has = |text: &str| lines.iter().any(|line| line.contains(text));
        assert!(has("3 of 3 nodes ready"), "{lines:#?}");
        assert!(has("8 x H100") && has("■■□□□□□□") && has("queues: 1"), "{lines:#?}");
        assert!(has("██████████ 1/1") && has("starts in 2m00s"), "{lines:#?}");
        assert!(lines[19].contains("q quits; http://here"), "{lines:#?}");
        assert!(screen(120, 20, true)[19].contains("connection is lost"));
    }

    #[test]
    fn small_screen_shows_the_number_of_hidden_rows() {
        let lines = screen(60, 12, false);
        assert!(lines.iter().any(|line| line.contains("of 4")), "{lines:#?}");
        screen(1, 1, false);
    }

    #[test]
    fn bar_is_proportional_to_ready_members() {
        assert_eq!(bar("3/8"), "███░░░░░░░ 3/8");
        assert_eq!(bar("9/8"), "██████████ 9/8");
        assert_eq!(bar("0/0"), "0/0");
        assert_eq!(bar(""), "");
    }
}
