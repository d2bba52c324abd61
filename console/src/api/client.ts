import type { Listed } from "./contract.ts";
import { addressOf, type Changes, type Lists, type Parameters, type Reads } from "./endpoints.ts";
import { type Answer, ApiFailure, failureOf } from "./failure.ts";
import { onOtherTab, sessionState, signedIn, signedOut, signInAgain } from "./session.ts";

interface Sent {
  readonly method: string;
  readonly address: string;
  readonly body?: unknown;
  readonly idempotencyKey?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

export function read<Path extends keyof Reads>(
  path: Path,
  parameters?: Parameters,
  signal?: AbortSignal,
): Promise<Answer<Reads[Path]>> {
  return send({ method: "GET", address: addressOf(path, parameters), signal });
}

export function readList<Path extends keyof Lists>(
  path: Path,
  parameters: Parameters,
  signal: AbortSignal,
): Promise<Answer<Listed<Lists[Path]>>> {
  return send({ method: "GET", address: addressOf(path, parameters), signal });
}

export function change<Name extends keyof Changes>(
  name: Name,
  body: Changes[Name]["body"],
  { parameters, idempotencyKey }: { parameters?: Parameters; idempotencyKey?: string } = {},
): Promise<Answer<Changes[Name]["answer"]>> {
  const [method = "", path = ""] = name.split(" ");
  return send({ method, address: addressOf(path, parameters), body, idempotencyKey });
}

/** A call of the playground. The answer is that of the data plane, as it comes. */
export function call(
  api: "chat/completions" | "embeddings",
  { keyId, body, signal }: { keyId: string; body: unknown; signal: AbortSignal },
): Promise<Answer<Response>> {
  const address = addressOf(`/playground/${api}`, { key_id: keyId });
  return sendAgain({ method: "POST", address, body, signal });
}

/** Asks who is signed in, at the start and when another tab has signed in or out. */
export async function loadSession(): Promise<void> {
  const response = await attempt({ method: "GET", address: addressOf("/session") });
  const answer = await valueOf<Reads["/session"]>(response);
  if (answer.ok) signedIn(answer.value, false);
  else if (answer.failure.status === 401) signedOut(false);
}

onOtherTab(loadSession);

/** Sends a request, and once more when its session had ended and the user has signed in again. */
async function sendAgain(request: Sent): Promise<Answer<Response>> {
  const first = await attempt(request);
  if (first.ok) return first;
  const { code } = first.failure;
  if (code === "not_signed_in" && (await signInAgain())) return attempt(request);
  if (code !== "wrong_csrf_token") return first;
  // Another tab has begun a new session.
  await loadSession();
  return attempt(request);
}

async function send<Value>(request: Sent): Promise<Answer<Value>> {
  return valueOf(await sendAgain(request), request.signal);
}

/** The body of an answer. */
export async function valueOf<Value>(
  answer: Answer<Response>,
  signal?: AbortSignal,
): Promise<Answer<Value>> {
  if (!answer.ok) return answer;
  try {
    // The contract of the API says what it is.
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion
    return { ok: true, value: (await answer.value.json()) as Value };
  } catch (error) {
    return unreachable(error, signal);
  }
}

async function attempt(request: Sent): Promise<Answer<Response>> {
  const { method, address, body, signal } = request;
  try {
    const response = await fetch(address, {
      method,
      headers: headersOf(request),
      ...(body !== undefined && { body: JSON.stringify(body) }),
      ...(signal !== undefined && { signal }),
    });
    if (!response.ok) return { ok: false, failure: await failureOf(response) };
    return { ok: true, value: response };
  } catch (error) {
    return unreachable(error, signal);
  }
}

/** Throws the error of a request that nobody waits for any more. */
function unreachable(error: unknown, signal?: AbortSignal): Answer<never> {
  if (signal?.aborted === true) throw error;
  return { ok: false, failure: new ApiFailure("The gateway cannot be reached. Try again.") };
}

function headersOf({ method, body, idempotencyKey }: Sent): Record<string, string> {
  const state = sessionState();
  const csrf = state.kind === "signed-in" ? state.session.csrf_token : null;
  return {
    ...(body !== undefined && { "content-type": "application/json" }),
    ...(method !== "GET" && csrf !== null && { "x-csrf-token": csrf }),
    ...(idempotencyKey !== undefined && { "idempotency-key": idempotencyKey }),
  };
}
