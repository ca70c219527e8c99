// Offsets: the engine counts bytes of UTF-8, the browser counts UTF-16 units.

/** Translates between bytes and UTF-16 units of one text. A text of ASCII needs no table. */
export class Offsets {
  private readonly units: Uint32Array | null;
  private readonly length: number;

  constructor(text: string) {
    this.length = text.length;
    let ascii = true;
    for (let at = 0; at < text.length; at++) if (text.charCodeAt(at) > 127) { ascii = false; break; }
    if (ascii) {
      this.units = null;
      return;
    }
    const units: number[] = [];
    for (let at = 0; at < text.length; ) {
      const point = text.codePointAt(at)!;
      const bytes = point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
      for (let byte = 0; byte < bytes; byte++) units.push(at);
      at += point > 0xffff ? 2 : 1;
    }
    units.push(text.length);
    this.units = Uint32Array.from(units);
  }

  /** The UTF-16 unit of a byte. */
  unit(byte: number): number {
    if (this.units === null) return Math.min(byte, this.length);
    return this.units[Math.min(byte, this.units.length - 1)];
  }

  /** The byte of a UTF-16 unit. */
  byte(unit: number): number {
    if (this.units === null) return Math.min(unit, this.length);
    let low = 0, high = this.units.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.units[middle] < unit) low = middle + 1; else high = middle;
    }
    return low;
  }
}
