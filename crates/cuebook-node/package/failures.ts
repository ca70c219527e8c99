// Failures of the native half as errors.

import * as errors from "./errors.js";
import { takeCause } from "./native.js";

type ErrorClass = new (message: string, details?: errors.ErrorDetails, options?: ErrorOptions & { report?: string }) => errors.CuebookError;

/** An error as the native half writes it. */
export interface NativeError {
  error: errors.ErrorDetails & { type?: string };
  report: string;
  cause: number | null;
}

/** The error of the native half. */
export function fromNative({ error, report, cause }: NativeError): errors.CuebookError {
  const kind = (errors as unknown as Record<string, ErrorClass | undefined>)[error.type ?? ""] ?? errors.CuebookError;
  const options: ErrorOptions & { report?: string } = { report: report.trimEnd() };
  if (cause !== null) {
    options.cause = takeCause(cause);
  }
  return new kind(error.message ?? "", error, options);
}

/** What a direct call of the native half threw: an error of Cuebook, or another one as it is. */
export function thrown(error: unknown): unknown {
  if (error instanceof Error && error.message.startsWith('{"error":')) {
    const made = fromNative(JSON.parse(error.message) as NativeError);
    // The place of the call is worth more than that of the constructor.
    Error.captureStackTrace(made, thrown);
    return made;
  }
  return error;
}
