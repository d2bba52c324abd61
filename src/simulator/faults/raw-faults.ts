import { tlsAlert, type RawConnection } from "../front/relayed-connection.ts";
import type { Reply } from "../frame.ts";
import type { OpenCall } from "../open-call.ts";
import { wait } from "../wait.ts";
import type { Fault, FaultMode } from "./fault-mode.ts";
import { bytesOf, firstHalf } from "./transport-faults.ts";

/** Lets the caller read what came before a reset, which discards unread bytes. */
const resetDelayMs = 30;

type RawFault = (sending: RawSending) => Promise<void>;

interface RawSending {
  readonly connection: RawConnection;
  readonly reply: Reply;
  readonly call: OpenCall;
}

/** Serves a fault that needs the raw connection; undefined for other faults. */
export function rawFault({ mode }: Fault): RawFault | undefined {
  return rawFaults[mode];
}

const rawFaults: Readonly<Partial<Record<FaultMode, RawFault>>> = {
  "cut-before-headers": async ({ connection }) => connection.end(),
  "reset-before-headers": async ({ connection }) => connection.reset(),
  "tls-fail": async ({ connection }) => {
    await connection.write(tlsAlert);
    connection.end();
  },
  "cut-after-headers": async (sending) => {
    await writeHead(sending);
    sending.connection.end();
  },
  "cut-mid-chunk": async (sending) => {
    await writeHead(sending);
    const next = await writeFirstHalf(sending);
    // The announced length is larger than what follows.
    await writeText(sending.connection, `${Math.max(2, next.length).toString(16)}\r\n`);
    await sending.connection.write(next.slice(0, Math.ceil(next.length / 2)));
    sending.connection.end();
  },
  reset: async (sending) => {
    await writeHead(sending);
    await writeFirstHalf(sending);
    await wait(resetDelayMs, sending.connection.closed);
    sending.connection.reset();
  },
};

async function writeHead({ connection, reply, call }: RawSending): Promise<void> {
  call.update({ status: reply.status });
  const headers = Object.entries({ ...reply.headers, "transfer-encoding": "chunked" });
  const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`);
  await writeText(connection, `HTTP/1.1 ${reply.status} OK\r\n${lines.join("")}\r\n`);
}

/** Resolves to the bytes that would come next. */
async function writeFirstHalf({ connection, reply, call }: RawSending): Promise<Uint8Array> {
  const frames = firstHalf(reply);
  for (let next = frames.next(); ; next = frames.next()) {
    if (next.done === true) return next.value;
    const bytes = bytesOf(next.value);
    await writeText(connection, `${bytes.length.toString(16)}\r\n`);
    await connection.write(bytes);
    await writeText(connection, "\r\n");
    call.countSent(next.value);
  }
}

function writeText(connection: RawConnection, text: string): Promise<void> {
  return connection.write(new TextEncoder().encode(text));
}
