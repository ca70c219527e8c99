// A place in shared memory for one answer: the worker of the line fills it, and the page empties it.

/** The longest answer in bytes. A longer one comes as a message. */
const LONGEST = 1 << 20;

export class Slot {
  /** The length of the answer, or 0 if there is none. */
  private readonly length: Int32Array;
  private readonly bytes: Uint8Array;

  constructor(readonly buffer = new SharedArrayBuffer(4 + LONGEST)) {
    this.length = new Int32Array(buffer, 0, 1);
    this.bytes = new Uint8Array(buffer, 4);
  }

  /** False if the last answer is still there, or this one is too long. */
  put(answer: string): boolean {
    if (Atomics.load(this.length, 0) !== 0) return false;
    const bytes = new TextEncoder().encode(answer);
    if (bytes.length > this.bytes.length) return false;
    this.bytes.set(bytes);
    Atomics.store(this.length, 0, bytes.length);
    return true;
  }

  take(): string | null {
    const length = Atomics.load(this.length, 0);
    if (length === 0) return null;
    // The copy is not shared: no decoder takes shared bytes in every browser.
    const answer = new TextDecoder().decode(this.bytes.slice(0, length));
    Atomics.store(this.length, 0, 0);
    return answer;
  }
}
