// Tables of the package `apache-arrow`: the buffers of their columns are handed over as bytes, and read in other threads.

import { native, type NativeTable } from "./native.js";

/** A table of the package `apache-arrow`. */
export interface ArrowTable {
  readonly numRows: number;
  readonly schema: { readonly fields: readonly { readonly name: string }[] };
  readonly batches?: readonly { readonly data: unknown }[];
  getChildAt(index: number): { get(index: number): unknown } | null;
}

/** A column of a batch, or the batch itself, as the package has it. */
interface Data {
  readonly type: Type;
  /** The first bit of the validity and of booleans. Other buffers are cut where the column begins. */
  readonly offset: number;
  readonly length: number;
  readonly nullCount: number;
  readonly values?: ArrayBufferView;
  readonly valueOffsets?: ArrayBufferView;
  readonly nullBitmap?: ArrayBufferView;
  readonly variadicBuffers?: readonly ArrayBufferView[];
  readonly children: readonly Data[];
  readonly dictionary?: { readonly data: readonly Data[] };
}

interface Type {
  readonly typeId: number;
  readonly children?: readonly { readonly name: string }[] | null;
  readonly indices?: Type;
  readonly bitWidth?: number;
  readonly isSigned?: boolean;
  readonly precision?: number;
  readonly scale?: number;
  readonly unit?: number;
  readonly timezone?: string | null;
  readonly listSize?: number;
}

/** What the native half reads. */
interface Description {
  name: string;
  format: string;
  length: number;
  bitOffset: number;
  hasNulls: boolean;
  buffers: (number | undefined)[];
  views: (number | undefined)[];
  children: Description[];
  dictionary?: Description;
}

/** A batch, ready to be handed over. */
export interface Batch {
  rows: number;
  buffers: ArrayBufferView[];
  description: Description;
}

// `typeId` of the package.
const TEXT = 5;
const LARGE_TEXT = 20;
const TEXT_VIEW = 24;
const LIST = 12;
const LARGE_LIST = 21;
const DICTIONARY = -1;
const UNITS = "smun";

/** The format of a type in Arrow's C data interface. */
function format(type: Type): string | undefined {
  switch (type.typeId) {
    case 1:
      return "n";
    case 2:
      return (type.isSigned ? "csil" : "CSIL")[Math.log2(type.bitWidth! / 8)];
    case 3:
      return [undefined, "f", "g"][type.precision!];
    case TEXT:
      return "u";
    case LARGE_TEXT:
      return "U";
    case TEXT_VIEW:
      return "vu";
    case 6:
      return "b";
    case 7:
      return type.bitWidth === 128 ? `d:${type.precision},${type.scale}` : undefined;
    case 8:
      return ["tdD", "tdm"][type.unit!];
    case 9:
      return `tt${UNITS[type.unit!]}`;
    case 10:
      return `ts${UNITS[type.unit!]}:${type.timezone ?? ""}`;
    case LIST:
      return "+l";
    case LARGE_LIST:
      return "+L";
    case 13:
      return "+s";
    case 16:
      return `+w:${type.listSize}`;
    case DICTIONARY:
      return format(type.indices!);
    default:
      return undefined;
  }
}

/** Describes an array, and collects its buffers; `undefined` if the native half does not know its type. */
function describe(name: string, data: Data, buffers: Map<ArrayBufferView, number>): Description | undefined {
  const { type } = data;
  const known = format(type);
  if (known === undefined) {
    return undefined;
  }
  const add = (buffer: ArrayBufferView | undefined): number | undefined => {
    if (!buffer?.byteLength) {
      return undefined;
    }
    // Dictionaries are shared.
    if (!buffers.has(buffer)) {
      buffers.set(buffer, buffers.size);
    }
    return buffers.get(buffer);
  };
  const isText = type.typeId === TEXT || type.typeId === LARGE_TEXT;
  const isList = type.typeId === LIST || type.typeId === LARGE_LIST;
  const children = data.children.map((child, at) => describe(type.children![at]!.name, child, buffers));
  const described: Description = {
    name,
    format: known,
    length: data.length,
    bitOffset: data.offset,
    hasNulls: data.nullCount !== 0,
    buffers: [add(data.nullBitmap), add(isText || isList ? data.valueOffsets : data.values), isText ? add(data.values) : undefined],
    views: type.typeId === TEXT_VIEW ? (data.variadicBuffers ?? []).map(add) : [],
    children: children as Description[],
  };
  if (type.typeId === DICTIONARY) {
    const [values, ...more] = data.dictionary!.data;
    const dictionary = values && more.length === 0 ? describe("", values, buffers) : undefined;
    if (!dictionary) {
      return undefined;
    }
    described.dictionary = dictionary;
  }
  return children.includes(undefined) ? undefined : described;
}

/** The batches of a table; `undefined` if the native half cannot read all of it. */
export function batchesOf(table: ArrowTable): Batch[] | undefined {
  const batches: Batch[] = [];
  for (const { data } of table.batches ?? []) {
    const buffers = new Map<ArrayBufferView, number>();
    const description = describe("", data as Data, buffers);
    if (!description) {
      return undefined;
    }
    batches.push({ rows: description.length, buffers: [...buffers.keys()], description });
  }
  return table.batches && batches;
}

/** The bytes that are copied before the event loop turns. */
const PIECE = 8 << 20;

/** Copies the buffers of a batch to the native half. */
export async function handOver(batch: Batch): Promise<NativeTable> {
  const table = new native.NativeTable();
  let copied = 0;
  for (const [number, { buffer, byteOffset, byteLength }] of batch.buffers.entries()) {
    for (let at = 0; at < byteLength; at += PIECE) {
      const piece = new Uint8Array(buffer, byteOffset + at, Math.min(PIECE, byteLength - at));
      table.append(number, piece);
      copied += piece.length;
      if (copied >= PIECE) {
        copied = 0;
        await new Promise((resolve) => setImmediate(resolve));
      }
    }
  }
  table.describe(JSON.stringify(batch.description));
  return table;
}
