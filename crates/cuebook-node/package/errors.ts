// The errors. Each one carries the code, the place, an excerpt and a hint, and its `report` is what the command line prints.

/** The fields of a finding, as `cuebook --json` prints them. */
export interface DiagnosticFields {
  /** The stable code, such as `CB101`; `cuebook help CB101` explains it. */
  code: string;
  /** The problem, in one sentence. */
  message: string;
  rule?: string;
  severity?: "error" | "warning" | "note";
  file?: string;
  /** The line in the file, from 1. */
  line?: number;
  /** The column in characters, from 1. */
  column?: number;
  /** The line of the file that it is about. */
  excerpt?: string;
  label?: string;
  /** What to do about it, as the command line prints it. */
  hint?: string;
  /** The same without commands and options; it is here if it differs from `hint`, and `null` if nothing is left. */
  advice?: string | null;
  /** The commands of `cuebook` that do it. */
  commands?: string[];
  [more: string]: unknown;
}

/** The fields of an error, as `cuebook --json` prints them. */
export interface ErrorDetails extends Partial<DiagnosticFields> {
  diagnostics?: DiagnosticFields[];
}

const FIELDS = ["code", "file", "line", "column", "excerpt", "hint"] as const;

/** What every error of Cuebook is. */
export class CuebookError extends Error {
  /** The stable code, such as `CB101`; `cuebook help CB101` explains it. */
  declare readonly code: string | undefined;
  /** The file that it is about. */
  declare readonly file: string | undefined;
  /** The line in the file, from 1. */
  declare readonly line: number | undefined;
  /** The column in characters, from 1. */
  declare readonly column: number | undefined;
  /** The line of the file that it is about. */
  declare readonly excerpt: string | undefined;
  /** What to do about it, as the command line prints it. */
  declare readonly hint: string | undefined;
  /** The fields of the error as `cuebook --json` prints them. */
  declare readonly details: ErrorDetails;
  /** The error as the command line prints it. */
  declare readonly report: string;

  constructor(message: string, details: ErrorDetails = {}, options?: ErrorOptions & { report?: string }) {
    super(message, options);
    // Node prints these fields below an uncaught error, so that only those are set that say something.
    for (const field of FIELDS) {
      if (details[field] !== undefined && details[field] !== null) {
        Object.defineProperty(this, field, { value: details[field], enumerable: true });
      }
    }
    const report = options?.report ?? printed(message, details);
    Object.defineProperty(this, "details", { value: { message, ...details } });
    Object.defineProperty(this, "report", { value: report });
  }

  /** What to do about it, for a program: the hint without commands and options of the command line. */
  get advice(): string | undefined {
    const { advice, hint } = this.details;
    return (advice === undefined ? hint : advice) ?? undefined;
  }

  /** The commands of `cuebook` that do it. */
  get commands(): string[] {
    return this.details.commands ?? [];
  }

  /** All findings; the fields of the error are those of the first. */
  get diagnostics(): DiagnosticFields[] {
    return this.details.diagnostics ?? [this.details as DiagnosticFields];
  }

  /** The error as an object for other processes. */
  toJSON(): ErrorDetails & { type: string; report: string } {
    return { type: this.name, report: this.report, ...this.details };
  }
}

function printed(message: string, details: ErrorDetails): string {
  const said = details.code ? `error[${details.code}]: ${message}` : message;
  return details.code && details.hint ? `${said}\nhelp: ${details.hint}` : said;
}

/** No place offers this id. */
export class PromptNotFoundError extends CuebookError {
  /** The id that was asked for. */
  get promptId(): string | undefined {
    return this.details["prompt_id"] as string | undefined;
  }

  /** The nearest ids, best first. */
  get nearest(): string[] {
    return (this.details["nearest"] as string[] | undefined) ?? [];
  }
}

/** A place that offers an id. */
export interface Candidate {
  source: string;
  pack_id?: string | null;
  [more: string]: unknown;
}

/** Several places offer this id, and no choice is recorded. */
export class PromptConflictError extends CuebookError {
  /** The id that was asked for. */
  get promptId(): string | undefined {
    return this.details["prompt_id"] as string | undefined;
  }

  /** The places, for `book.resolve`. */
  get candidates(): Candidate[] {
    return (this.details["candidates"] as Candidate[] | undefined) ?? [];
  }
}

/** A prompt's files are invalid. */
export class PromptReadError extends CuebookError {}

/** A variable that is missing, unknown or of the wrong type. */
export interface VariableProblem {
  name: string;
  [more: string]: unknown;
}

/** Variables are missing, unknown or of the wrong type. */
export class PromptValidationError extends CuebookError {
  /** Every variable with a problem. */
  get problems(): VariableProblem[] {
    return (this.details["variables"] ?? this.details["problems"] ?? []) as VariableProblem[];
  }
}

/** The template failed while it ran. */
export class PromptRenderError extends CuebookError {}

/** A hook or a variable provider failed, or cannot run here. */
export class PromptHookError extends CuebookError {}

/** Code of a pack has not been approved, or has changed since. */
export class PromptApprovalRequired extends CuebookError {}

/** The value of a strict input looks like a role marker. */
export class StrictViolation extends CuebookError {}

/** The engine, parser or provider that a prompt names is unknown. */
export class InvokerError extends CuebookError {}

/** A provider does not accept what a prompt says. */
export class WireError extends CuebookError {}

/** A provider's reply is malformed, or reports an error. */
export class ReplyError extends CuebookError {}

/** Overrides are invalid, or do not fit their prompt. */
export class PromptOverridesError extends CuebookError {}

/** A reply does not match the prompt's outputs. */
export class OutputParseError extends CuebookError {}

/** A model asks to see more of the prompt. */
export class VisibilityExpansionRequired extends CuebookError {
  /** What to open: the visibility by path. */
  get requestedOverrides(): Record<string, unknown> {
    return (this.details["requested_overrides"] as Record<string, unknown> | undefined) ?? {};
  }

  /** The sections that the model named. */
  get sectionKeys(): string[] {
    return (this.details["section_keys"] as string[] | undefined) ?? [];
  }

  /** Why the model wants to see them. */
  get reason(): string {
    return (this.details["reason"] as string | undefined) ?? "";
  }
}

/** No space has this item. */
export class ItemNotFoundError extends CuebookError {}

/** An item differs from what was signed, or its signer is not trusted. */
export class IntegrityError extends CuebookError {}

/** An item cannot run, or failed. */
export class ExecuteError extends CuebookError {}

/** A pack's manifest, archive or folder is invalid. */
export class PackError extends CuebookError {}

/** One of Cuebook's own files is invalid. */
export class ConfigError extends CuebookError {}

/** A limit was reached. */
export class LimitError extends CuebookError {}

/** A file cannot be read or written. */
export class IoError extends CuebookError {}

/** A call is not well formed. */
export class UsageError extends CuebookError {}

for (const [name, kind] of Object.entries({
  CuebookError,
  PromptNotFoundError,
  PromptConflictError,
  PromptReadError,
  PromptValidationError,
  PromptRenderError,
  PromptHookError,
  PromptApprovalRequired,
  StrictViolation,
  InvokerError,
  WireError,
  ReplyError,
  PromptOverridesError,
  OutputParseError,
  VisibilityExpansionRequired,
  ItemNotFoundError,
  IntegrityError,
  ExecuteError,
  PackError,
  ConfigError,
  LimitError,
  IoError,
  UsageError,
})) {
  // The name of a class survives a program that shortens names.
  Object.defineProperty(kind.prototype, "name", { value: name, configurable: true, writable: true });
}
