import type { HostAndPort } from "../../../../domain/addresses/valkey-address.ts";
import type { Clock } from "../../../../domain/clock.ts";
import { type ConnectionProblem, problemOfReply } from "./connection-problem.ts";
import type { ServerSettings } from "./server-settings.ts";
import { isVague, problemOf } from "./valkey-errors.ts";

/** How long a server has for its answer. */
const answerMs = 1_000;
/** As much of an answer as can matter. */
const longestReplyCharacters = 4_000;

export interface Looked {
  readonly server: HostAndPort;
  readonly settings: ServerSettings;
  readonly clock: Clock;
}

/** Why a connection could not be made, from what the client says and, if that is little, a look. */
export async function explain(
  error: unknown,
  { server, settings, clock }: Looked,
): Promise<ConnectionProblem> {
  const shown = isVague(error) ? await lookAtServer(server, settings, clock) : undefined;
  return shown ?? problemOf(error);
}

/**
 * Looks with a plain socket at a server to which no connection could be made: the runtime's client
 * reports every failure before the first answer as a closed connection. Undefined: the server
 * answers now.
 */
async function lookAtServer(
  server: HostAndPort,
  settings: ServerSettings,
  clock: Clock,
): Promise<ConnectionProblem | undefined> {
  const { tls } = settings;
  const seen = await exchange({ server, tls, text: greeting(settings) }, clock);
  const shown = problemSeen(seen, settings);
  if (shown !== "no answer") return shown;
  // A server with TLS closes a connection without it, which in the other case is only silent.
  if (tls !== undefined || seen.isClosed) {
    const otherTls = tls === undefined ? { rejectUnauthorized: false } : undefined;
    const other = await exchange({ server, tls: otherTls, text: "PING\r\n" }, clock);
    if (other.isSecure || errorLine.test(other.reply) || other.reply.startsWith("+")) {
      const text = tls === undefined ? "it answers only with TLS" : "it answers only without TLS";
      return { kind: "encryption", text };
    }
  }
  if (!seen.isClosed) return { kind: "silent", text: `no answer within ${answerMs} ms` };
  const after = seen.isSecure ? "after the TLS handshake" : "without an answer";
  return { kind: "other", text: `it closed the connection ${after}` };
}

/** What came of one exchange. */
interface Seen {
  reply: string;
  isClosed: boolean;
  /** Whether TLS was agreed on. */
  isSecure: boolean;
  /** Of the connection or of the server's certificate. */
  problem: ConnectionProblem | undefined;
}

const errorLine = /^-(\S.*?)\r\n/m;
/** The runtime's code for a handshake that did not take place. */
const noHandshake = "ECONNRESET";

function problemSeen(
  { reply, problem, isSecure }: Seen,
  { tls, password }: ServerSettings,
): ConnectionProblem | undefined | "no answer" {
  if (problem !== undefined) return problem;
  const refusal = errorLine.exec(reply)?.[1];
  if (refusal !== undefined) return problemOfReply(withoutSecret(refusal, password));
  if (reply.endsWith("+PONG\r\n")) return undefined;
  const isEncrypted = reply.startsWith("\x15\x03");
  if (reply === "" || isEncrypted || (tls !== undefined && !isSecure)) return "no answer";
  return { kind: "other", text: "it is no Valkey or Redis server, by its answer" };
}

function problemOfConnect(code: string, message: string): ConnectionProblem {
  switch (code) {
    case "ECONNREFUSED":
      return { kind: "refused", text: "the connection was refused" };
    case "ENOTFOUND":
    case "EAI_AGAIN":
      return { kind: "unknown-host", text: `its host was not found (${message})` };
    default:
      return { kind: "silent", text: `it cannot be reached (${code || message})` };
  }
}

function problemOfHandshake(code: string, message: string): ConnectionProblem {
  return code.startsWith("ERR_SSL")
    ? { kind: "encryption", text: `TLS could not be agreed on: ${message}` }
    : { kind: "certificate", text: `its certificate is not accepted: ${message}` };
}

/** Servers that do not know a command repeat its arguments. Long explanations are cut. */
function withoutSecret(refusal: string, password: string): string {
  const [told = ""] = refusal.split(/, with args|\. /, 1);
  return password === "" ? told : told.replaceAll(password, "***");
}

/** The same commands as those of the client. */
function greeting({ username, password }: ServerSettings): string {
  const signIn = password === "" ? [] : ["AUTH", username || "default", password];
  return commandOf(["HELLO", "3", ...signIn]) + commandOf(["PING"]);
}

function commandOf(words: readonly string[]): string {
  const parts = words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`);
  return `*${words.length}\r\n${parts.join("")}`;
}

interface Exchange {
  readonly server: HostAndPort;
  readonly tls: ServerSettings["tls"];
  readonly text: string;
}

/** Sends the text, and waits for an error, the answer to the last `PING`, the end, or too long. */
function exchange({ server, tls, text }: Exchange, clock: Clock): Promise<Seen> {
  const seen: Seen = { reply: "", isClosed: false, isSecure: false, problem: undefined };
  return new Promise((resolve) => {
    let socket: Bun.Socket | undefined;
    let isOver = false;
    const end = (): void => {
      if (isOver) return;
      isOver = true;
      cancel();
      socket?.terminate();
      resolve(seen);
    };
    const cancel = clock.schedule(end, answerMs);
    const fail = (problem: ConnectionProblem): void => {
      if (!isOver) seen.problem = problem;
      end();
    };
    const connected = Bun.connect({
      hostname: server.host.replace(/^\[(.*)\]$/, "$1"),
      port: server.port,
      ...(tls !== undefined && { tls }),
      socket: {
        open(opened) {
          socket = opened;
          if (isOver) opened.terminate();
          else if (tls === undefined) opened.write(text);
        },
        handshake(opened, isSecure, error) {
          seen.isSecure = isSecure;
          if (isSecure) opened.write(text);
          else if (error !== null && codeOf(error) !== noHandshake) {
            fail(problemOfHandshake(codeOf(error), error.message));
          }
        },
        data(_socket, bytes) {
          seen.reply += bytes.toString("latin1");
          const { length } = seen.reply;
          const isEnough = seen.reply.endsWith("+PONG\r\n") || length > longestReplyCharacters;
          if (isEnough || errorLine.test(seen.reply)) end();
        },
        close() {
          seen.isClosed ||= !isOver;
          end();
        },
      },
    });
    connected.catch((error: unknown) => fail(problemOfConnect(codeOf(error), messageOf(error))));
  });
}

function codeOf(error: unknown): string {
  const code = error instanceof Error && "code" in error ? error.code : "";
  return typeof code === "string" ? code : "";
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
