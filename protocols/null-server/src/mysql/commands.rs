//! The dialogue with one client, from packets to answers, without I/O.

use crate::mysql::answers::{Answers, FIRST_STATUS, Template};
use crate::mysql::constants::{Reply, reply};
use crate::mysql::handshake::{NATIVE, SHA2, login, put_fast_success, put_greeting, put_switch};
use crate::mysql::packet::{
    Frame, HEADER, LONGEST, capability, first_frame, packet, payload_length, put_error, status,
};
use crate::mysql::resultset::{Described, Format, put_column, put_end};
use crate::mysql::statements::{Description, Prepared, Statements};
use crate::mysql::variables::Asker;
use crate::sql::{Statement, find_word, placeholders, skip_blank, split, statement, strings};
use crate::taken::{ENOUGH, Taken};

/// The longest accepted message, as announced in `max_allowed_packet`.
const LONGEST_MESSAGE: usize = 64 << 20;

#[derive(Debug, PartialEq, Eq)]
enum Phase {
    /// Waiting for the login.
    Login,
    /// Waiting for an authentication with another method.
    Proof { sha2: bool },
    /// Waiting for commands.
    Ready,
    /// Waiting for the file of a LOAD DATA LOCAL; `left` bytes of the current packet are pending.
    File { left: usize },
}

/// The dialogue with one client.
#[derive(Debug)]
pub struct Dialogue {
    id: u32,
    phase: Phase,
    capabilities: u32,
    status: u16,
    database: Option<String>,
    statements: Statements,
    /// The first packets of a message with several packets.
    message: Vec<u8>,
}

impl Dialogue {
    /// Starts with the greeting.
    pub fn start(id: u32, out: &mut Vec<u8>) -> Self {
        put_greeting(out, id);
        Self {
            id,
            phase: Phase::Login,
            capabilities: 0,
            status: FIRST_STATUS,
            database: None,
            statements: Statements::default(),
            message: Vec::new(),
        }
    }

    /// Handles complete packets and appends their answers.
    pub fn take(&mut self, input: &[u8], answers: &Answers, out: &mut Vec<u8>) -> Taken {
        let (mut rest, mut taken) = (input, Taken::default());
        while !taken.ended {
            if out.len() >= ENOUGH {
                taken.full = true;
                break;
            }
            if let Phase::File { left } = &mut self.phase
                && (*left > 0 || rest.first_chunk::<HEADER>().is_some_and(|header| payload_length(*header) > 0))
            {
                rest = drop_file(left, rest);
                if rest.is_empty() {
                    break;
                }
                continue;
            }
            let Some((frame, more)) = first_frame(rest) else { break };
            rest = more;
            taken.commands |= matches!(self.phase, Phase::Ready | Phase::File { .. });
            taken.ended = self.frame(frame, answers, out);
        }
        taken.bytes = input.len() - rest.len();
        taken
    }

    /// Handles one packet; true at the end of the dialogue.
    #[inline]
    fn frame(&mut self, frame: Frame<'_>, answers: &Answers, out: &mut Vec<u8>) -> bool {
        let mut sequence = frame.sequence.wrapping_add(1);
        if frame.payload.len() == LONGEST || !self.message.is_empty() {
            return self.long_message(frame, answers, out);
        }
        match self.phase {
            Phase::Ready => self.command(frame.payload, sequence, answers, out),
            Phase::Login => self.login(frame.payload, sequence, answers, out),
            Phase::Proof { sha2 } => {
                // An empty password needs no proof, and its login has no fast-success message.
                if sha2 && frame.payload.len() > 1 {
                    put_fast_success(out, &mut sequence);
                }
                self.phase = Phase::Ready;
                answers.done.append(out, &mut sequence, self.status);
                false
            }
            Phase::File { .. } => {
                self.phase = Phase::Ready;
                answers.changed.append(out, &mut sequence, self.status);
                false
            }
        }
    }

    #[cold]
    fn long_message(&mut self, frame: Frame<'_>, answers: &Answers, out: &mut Vec<u8>) -> bool {
        let mut sequence = frame.sequence.wrapping_add(1);
        if self.message.len() + frame.payload.len() > LONGEST_MESSAGE {
            let text = format!("Got a packet bigger than max_allowed_packet, {LONGEST_MESSAGE} bytes");
            put_error(out, &mut sequence, 1153, "08S01", &text);
            return true;
        }
        self.message.extend_from_slice(frame.payload);
        if frame.payload.len() == LONGEST {
            return false;
        }
        let message = std::mem::take(&mut self.message);
        self.command(&message, sequence, answers, out)
    }

    fn login(&mut self, payload: &[u8], mut sequence: u8, answers: &Answers, out: &mut Vec<u8>) -> bool {
        let Some(login) = login(payload) else {
            put_error(out, &mut sequence, 1043, "08S01", "Bad handshake: the null server speaks protocol 4.1");
            return true;
        };
        self.capabilities = login.capabilities;
        self.database = login.database.map(|name| String::from_utf8_lossy(name).into_owned());
        match login.plugin {
            None | Some(NATIVE | b"") => {
                self.phase = Phase::Ready;
                answers.done.append(out, &mut sequence, self.status);
            }
            Some(other) => {
                let sha2 = other == SHA2;
                self.phase = Phase::Proof { sha2 };
                put_switch(out, &mut sequence, if sha2 { SHA2 } else { NATIVE });
            }
        }
        false
    }

    #[inline]
    fn has(&self, capability: u32) -> bool {
        self.capabilities & capability != 0
    }

    fn asker(&self) -> Asker<'_> {
        Asker { id: self.id, status: self.status, database: self.database.as_deref() }
    }

    fn command(&mut self, payload: &[u8], mut sequence: u8, answers: &Answers, out: &mut Vec<u8>) -> bool {
        let Some((&command, body)) = payload.split_first() else {
            put_error(out, &mut sequence, 1835, "HY000", "Malformed communication packet: it is empty");
            return false;
        };
        match command {
            0x17 => self.execute(body, sequence, answers, out),
            0x03 => self.query(body, sequence, answers, out),
            _ => return self.rarer_command(command, body, sequence, answers, out),
        }
        false
    }

    fn rarer_command(
        &mut self,
        command: u8,
        body: &[u8],
        mut sequence: u8,
        answers: &Answers,
        out: &mut Vec<u8>,
    ) -> bool {
        let sequence = &mut sequence;
        match command {
            // COM_QUIT
            0x01 => return true,
            // COM_INIT_DB
            0x02 => {
                self.database = Some(String::from_utf8_lossy(body).into_owned());
                answers.done.append(out, sequence, self.status);
            }
            // COM_FIELD_LIST: the columns, each with its default, which is NULL.
            0x04 => {
                for column in &answers.columns {
                    packet(out, sequence, |out| {
                        put_column(out, column);
                        out.push(0xFB);
                    });
                }
                put_end(out, sequence, self.has(capability::DEPRECATE_EOF));
            }
            // COM_STATISTICS
            0x09 => packet(out, sequence, |out| out.extend_from_slice(b"Fixed answers: no statistics")),
            // COM_DEBUG, COM_SET_OPTION
            0x0D | 0x1B => {
                put_end(out, sequence, self.has(capability::DEPRECATE_EOF));
            }
            // COM_PROCESS_KILL, COM_PING, COM_STMT_RESET
            0x0C | 0x0E | 0x1A => answers.done.append(out, sequence, self.status),
            // COM_CHANGE_USER, COM_RESET_CONNECTION
            0x11 | 0x1F => {
                self.statements.clear();
                self.status = FIRST_STATUS;
                answers.done.append(out, sequence, self.status);
            }
            // COM_STMT_PREPARE
            0x16 => self.prepare(body, sequence, answers, out),
            // COM_STMT_SEND_LONG_DATA has no answer, and neither has COM_STMT_CLOSE.
            0x18 => {}
            0x19 => {
                if let Some(id) = statement_id(body) {
                    self.statements.close(id);
                }
            }
            // COM_STMT_BULK_EXECUTE
            0xFA => self.execute(body, *sequence, answers, out),
            _ => put_error(out, sequence, 1047, "08S01", &format!("Unknown command {command:#04x}")),
        }
        false
    }

    #[inline]
    fn execute(&mut self, body: &[u8], mut sequence: u8, answers: &Answers, out: &mut Vec<u8>) {
        let Some(prepared) = statement_id(body).and_then(|id| self.statements.get(id)) else {
            put_error(out, &mut sequence, 1243, "HY000", "Unknown prepared statement handler given to EXECUTE");
            return;
        };
        let act = match prepared {
            Prepared::Rows => Statement::Rows,
            Prepared::Changed => Statement::Changed,
            Prepared::Own(template) => return template.append(out, &mut sequence, self.status),
            Prepared::Acts(act) => *act,
        };
        self.answer(act, Format::Binary, 0, &mut sequence, answers, out);
    }

    /// Appends the prepared answer to a statement.
    #[inline]
    fn answer(
        &mut self,
        statement: Statement,
        format: Format,
        more: u16,
        sequence: &mut u8,
        answers: &Answers,
        out: &mut Vec<u8>,
    ) {
        let template = match statement {
            Statement::Rows => answers.rows(format, self.has(capability::DEPRECATE_EOF)),
            Statement::Changed | Statement::LoadLocal => &answers.changed,
            _ => &answers.done,
        };
        match statement {
            Statement::Rows | Statement::Changed if self.status & status::AUTOCOMMIT != 0 => {}
            Statement::Rows | Statement::Changed | Statement::Begin => self.status |= status::IN_TRANSACTION,
            Statement::End => self.status &= !status::IN_TRANSACTION,
            Statement::Autocommit(true) => self.status = status::AUTOCOMMIT,
            Statement::Autocommit(false) => self.status &= !status::AUTOCOMMIT,
            _ => {}
        }
        template.append(out, sequence, self.status | more);
    }

    #[inline]
    fn query(&mut self, text: &[u8], mut sequence: u8, answers: &Answers, out: &mut Vec<u8>) {
        let several = self.has(capability::MULTI_STATEMENTS) && text.contains(&b';');
        if !several {
            return self.statement(text, 0, &mut sequence, answers, out);
        }
        let mut parts = split(text).peekable();
        if parts.peek().is_none() {
            return put_error(out, &mut sequence, 1065, "42000", "Query was empty");
        }
        while let Some(part) = parts.next() {
            let more = if parts.peek().is_some() { status::MORE_RESULTS } else { 0 };
            self.statement(part, more, &mut sequence, answers, out);
            if matches!(self.phase, Phase::File { .. }) {
                // Statements after a LOAD DATA LOCAL in one text are ignored.
                break;
            }
        }
    }

    fn statement(&mut self, text: &[u8], more: u16, sequence: &mut u8, answers: &Answers, out: &mut Vec<u8>) {
        match statement(text) {
            Statement::Requesting => self.requested(text, more, sequence, answers, out),
            Statement::LoadLocal => self.load(text, sequence, out),
            Statement::Use => {
                self.use_schema(text);
                self.answer(Statement::Use, Format::Text, more, sequence, answers, out);
            }
            other => self.answer(other, Format::Text, more, sequence, answers, out),
        }
    }

    #[cold]
    fn requested(&mut self, text: &[u8], more: u16, sequence: &mut u8, answers: &Answers, out: &mut Vec<u8>) {
        match reply(text, &self.asker()) {
            Reply::Table(table) => {
                let deprecate_eof = self.has(capability::DEPRECATE_EOF);
                let template = Template::rows(&table.columns, &table.rows, Format::Text, deprecate_eof);
                template.append(out, sequence, self.status | more);
            }
            Reply::Fixed => self.answer(Statement::Rows, Format::Text, more, sequence, answers, out),
            Reply::NoVariable(name) => no_variable(out, sequence, &name),
        }
    }

    #[cold]
    fn load(&mut self, text: &[u8], sequence: &mut u8, out: &mut Vec<u8>) {
        let name = find_word(text, b"infile").and_then(|rest| strings(rest).first().copied());
        match name {
            Some(name) if self.has(capability::LOCAL_FILES) => {
                packet(out, sequence, |out| {
                    out.push(0xFB);
                    out.extend_from_slice(name);
                });
                self.phase = Phase::File { left: 0 };
            }
            Some(_) => {
                put_error(out, sequence, 1148, "42000", "The client did not allow LOAD DATA LOCAL when it connected")
            }
            None => {
                put_error(out, sequence, 1064, "42000", "LOAD DATA LOCAL INFILE is to be followed by a file's name")
            }
        }
    }

    #[cold]
    fn use_schema(&mut self, text: &[u8]) {
        let name = find_word(text, b"use").unwrap_or_default().trim_ascii();
        let name = String::from_utf8_lossy(name);
        self.database = Some(name.trim_matches(['`', ';', ' ']).to_owned());
    }

    fn prepare(&mut self, text: &[u8], sequence: &mut u8, answers: &Answers, out: &mut Vec<u8>) {
        let deprecate_eof = self.has(capability::DEPRECATE_EOF);
        let text = skip_blank(text);
        let (prepared, columns) = match statement(text) {
            Statement::Rows => (Prepared::Rows, answers.columns.clone()),
            Statement::Changed => (Prepared::Changed, Vec::new()),
            Statement::Requesting => match reply(text, &self.asker()) {
                Reply::Table(table) => {
                    let template = Template::rows(&table.columns, &table.rows, Format::Binary, deprecate_eof);
                    (Prepared::Own(Box::new(template)), table.columns)
                }
                Reply::Fixed => (Prepared::Rows, answers.columns.clone()),
                Reply::NoVariable(name) => return no_variable(out, sequence, &name),
            },
            Statement::LoadLocal => {
                let message = "This command is not supported in the prepared statement protocol yet";
                return put_error(out, sequence, 1295, "HY000", message);
            }
            other => (Prepared::Acts(other), Vec::new()),
        };
        let placeholders = placeholders(text);
        if placeholders > usize::from(u16::MAX) {
            return put_error(out, sequence, 1390, "HY000", "Prepared statement contains too many placeholders");
        }
        let id = self.statements.add(prepared);
        put_prepared(out, sequence, id, &Description { columns, placeholders }, deprecate_eof);
    }
}

/// Drops received bytes of a file's packets, except the empty packet that ends the file.
fn drop_file<'a>(left: &mut usize, mut rest: &'a [u8]) -> &'a [u8] {
    if *left == 0 {
        let Some((header, more)) = rest.split_first_chunk::<HEADER>() else { return rest };
        (*left, rest) = (payload_length(*header), more);
    }
    let here = rest.len().min(*left);
    *left -= here;
    &rest[here..]
}

#[inline]
fn statement_id(body: &[u8]) -> Option<u32> {
    body.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}

fn no_variable(out: &mut Vec<u8>, sequence: &mut u8, name: &str) {
    put_error(out, sequence, 1193, "HY000", &format!("Unknown system variable '{name}'"));
}

/// Appends the answer to COM_STMT_PREPARE.
fn put_prepared(out: &mut Vec<u8>, sequence: &mut u8, id: u32, of: &Description, deprecate_eof: bool) {
    packet(out, sequence, |out| {
        out.push(0);
        out.extend_from_slice(&id.to_le_bytes());
        out.extend_from_slice(&(of.columns.len() as u16).to_le_bytes());
        out.extend_from_slice(&(of.placeholders as u16).to_le_bytes());
        out.extend_from_slice(&[0, 0, 0]);
    });
    let placeholder = Described::text("?");
    for _ in 0..of.placeholders {
        packet(out, sequence, |out| put_column(out, &placeholder));
    }
    if of.placeholders > 0 && !deprecate_eof {
        put_end(out, sequence, false);
    }
    for column in &of.columns {
        packet(out, sequence, |out| put_column(out, column));
    }
    if !of.columns.is_empty() && !deprecate_eof {
        put_end(out, sequence, false);
    }
}
