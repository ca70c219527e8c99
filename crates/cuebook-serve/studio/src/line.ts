// The worker that has the web socket of the page. After a key, Chromium runs no task of the page until the next frame is drawn, so an
// answer that comes as a message misses that frame. One in shared memory does not: the page takes it while it makes the frame.

import { Slot } from "./slot";

export type ToLine = { text: string } | { url: string; protocols: string[]; buffer: SharedArrayBuffer | null };
export interface FromLine {
  event: "open" | "closed" | "answer";
  /** Missing if the answer is in the slot. */
  text?: string;
}

const page = self as unknown as { postMessage(message: FromLine): void };
let socket: WebSocket | null = null;
let slot: Slot | null = null;

self.onmessage = ({ data }: MessageEvent<ToLine>) => {
  if ("text" in data) return socket?.send(data.text);
  if (data.buffer) slot ??= new Slot(data.buffer);
  socket = new WebSocket(data.url, data.protocols);
  socket.onopen = () => page.postMessage({ event: "open" });
  socket.onclose = () => page.postMessage({ event: "closed" });
  socket.onmessage = ({ data }) => page.postMessage({ event: "answer", text: slot?.put(data) ? undefined : data });
};
