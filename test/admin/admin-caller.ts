import type { ErrorBody } from "../support/bodies.ts";

export type Headers = Readonly<Record<string, string>>;

/** How somebody shows who it is, over real HTTP. */
export interface Credential {
  /** Sent with every request. */
  readonly headers: Headers;
  /** Sent with requests that change something, as a page of the console does. */
  readonly changeHeaders: Headers;
}

export const nobody: Credential = { headers: {}, changeHeaders: {} };

export function bearer(text: string): Credential {
  return { headers: { authorization: `Bearer ${text}` }, changeHeaders: {} };
}

export interface AdminRequest {
  readonly method: string;
  /** From `/admin/v1` on, or a whole path. */
  readonly path: string;
  readonly body?: unknown;
}

export interface AdminAnswer {
  readonly status: number;
  readonly headers: globalThis.Headers;
  readonly text: string;
  /** Of an error. */
  readonly code: string | null | undefined;
}

/** Sends a request of the control plane as somebody; redirects are answers. */
export async function sendAs(
  adminUrl: string,
  { method, path, body }: AdminRequest,
  { headers, changeHeaders }: Credential,
): Promise<AdminAnswer> {
  const response = await fetch(adminUrl + path, {
    method,
    redirect: "manual",
    headers: {
      ...(body !== undefined && { "content-type": "application/json" }),
      ...headers,
      ...(method !== "GET" && changeHeaders),
    },
    ...(body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, headers: response.headers, text, code: codeOf(text) };
}

/** The session's cookie as a browser sends it, and what its page knows. */
export interface Session extends Credential {
  readonly cookie: string;
  readonly csrfToken: string;
}

/** Signs in with a password; throws when it is refused. */
export async function signIn(adminUrl: string, email: string, password: string): Promise<Session> {
  const request = { method: "POST", path: "/admin/v1/session", body: { email, password } };
  const answer = await sendAs(adminUrl, request, nobody);
  if (answer.status !== 200) throw new Error(`${email} cannot sign in: ${answer.text}`);
  return sessionOf(adminUrl, answer);
}

/** The session that an answer begins. */
export function sessionOf(adminUrl: string, { headers, text }: AdminAnswer): Session {
  const [cookie = ""] = headers.getSetCookie()[0]?.split(";") ?? [];
  const { csrf_token: csrfToken } = JSON.parse(text) as { csrf_token: string };
  return {
    cookie,
    csrfToken,
    headers: { cookie },
    changeHeaders: { origin: adminUrl, "x-csrf-token": csrfToken },
  };
}

function codeOf(text: string): string | null | undefined {
  if (!text.startsWith(`{"error":`)) return undefined;
  return (JSON.parse(text) as ErrorBody).error.code;
}
