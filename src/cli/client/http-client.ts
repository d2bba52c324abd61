import { errorCode } from "../../domain/system-files.ts";
import { isLoopback } from "../../domain/network.ts";
import { randomBase62, type RandomBytes } from "../../domain/keys/base62.ts";
import type { Secret } from "../../domain/keys/secret.ts";
import {
  readRefusal,
  textsOf,
  type AdminClient,
  type AdminMethod,
  type AdminRequestDetails,
} from "./admin-client.ts";
import { CommandError } from "../command.ts";

export interface HttpClientOptions {
  readonly url: string;
  readonly token: Secret;
  readonly random: RandomBytes;
  readonly signal: AbortSignal;
  /** Sentences about a gateway that does not answer, for a person. */
  readonly advise: () => Promise<string>;
}

/** The gateway cannot be reached, or answers too late. */
export class NoAnswer extends CommandError {
  override readonly name = "NoAnswer";
}

/** Enough for verifying a long audit, the slowest request. */
const requestTimeoutMs = 120_000;

export function createHttpClient(options: HttpClientOptions): AdminClient {
  return {
    isOffline: false,
    async request(method, path, details = {}) {
      const { idempotencyKey = `cli-${randomBase62(24, options.random)}` } = details;
      const wanted = { ...details, idempotencyKey, method, path };
      // Safe to repeat, because every change has an idempotency key.
      const { status, body } = await attempt(options, 2, async () => {
        const signal = AbortSignal.any([options.signal, AbortSignal.timeout(requestTimeoutMs)]);
        const response = await send(options, wanted, signal);
        return { status: response.status, body: await readJson(response, options) };
      });
      if (status >= 400) throw readRefusal(status, body);
      return body;
    },
    stream: (path, query) => readStream(options, { method: "GET", path, query }),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
}

interface Wanted extends AdminRequestDetails {
  readonly method: AdminMethod;
  readonly path: string;
}

function send(
  options: HttpClientOptions,
  { method, path, query, body, idempotencyKey = "" }: Wanted,
  signal: AbortSignal,
): Promise<Response> {
  const url = new URL(`${options.url.replace(/\/+$/, "")}/admin/v1${path}`);
  url.search = new URLSearchParams(textsOf(query ?? {})).toString();
  return fetch(url, {
    method,
    headers: {
      authorization: `Bearer ${options.token.reveal()}`,
      ...(method !== "GET" && { "idempotency-key": idempotencyKey }),
      ...(body !== undefined && { "content-type": "application/json" }),
    },
    // A redirect would send the token to another server.
    redirect: "manual",
    ...(body !== undefined && { body: JSON.stringify(body) }),
    // The token of this machine's gateway must not pass through a proxy.
    ...(isLoopback(url.hostname) && { proxy: false }),
    signal,
  });
}

async function attempt<Result>(
  options: HttpClientOptions,
  times: number,
  request: () => Promise<Result>,
): Promise<Result> {
  try {
    return await request();
  } catch (error) {
    if (error instanceof CommandError || options.signal.aborted) throw error;
    if (times > 1) return attempt(options, times - 1, request);
    const { url, advise } = options;
    throw new NoAnswer(`no answer from ${url} (${reasonOf(error)}). ${await advise()}`);
  }
}

async function readJson(response: Response, options: HttpClientOptions): Promise<unknown> {
  const text = await response.text();
  try {
    return JSON.parse(text);
  } catch {
    throw notSluice(response.status, options);
  }
}

async function* readStream(options: HttpClientOptions, wanted: Wanted): AsyncGenerator<Uint8Array> {
  const { signal } = options;
  const response = await attempt(options, 1, () => send(options, wanted, signal));
  if (response.status >= 400) throw readRefusal(response.status, await readJson(response, options));
  if (response.status !== 200 || response.body === null) throw notSluice(response.status, options);
  try {
    yield* response.body;
  } catch (error) {
    if (signal.aborted) throw error;
    // The output is incomplete, which a script must be able to notice.
    throw new CommandError(`the connection broke: ${reasonOf(error)}`);
  }
}

function notSluice(status: number, { url }: HttpClientOptions): CommandError {
  return new CommandError(
    `${url} answered with status ${status}, but not like a control plane; is it the admin ` +
      "address of a gateway?",
  );
}

function reasonOf(error: unknown): string {
  return errorCode(error) ?? (error instanceof Error ? error.message : String(error));
}
