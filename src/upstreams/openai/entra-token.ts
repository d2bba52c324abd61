import type { Clock } from "../../domain/clock.ts";
import { UpstreamFailure } from "../../domain/errors/upstream-failure.ts";
import { countOf, nonEmpty, parseObject } from "../../domain/json-fields.ts";
import { Secret } from "../../domain/keys/secret.ts";
import type { AdapterServices } from "../adapter.ts";
import { CredentialCache } from "../shared/credential-cache.ts";
import { cleanCode } from "../shared/failure-reply.ts";
import type { EntraSettings } from "./config.ts";

interface EntraToken {
  readonly token: Secret;
  readonly expiresAtMs: number;
}

/** Largest answer of the token service. */
const mostBytes = 64 * 1024;

/** Access tokens of Microsoft Entra for one application, renewed five minutes before they expire. */
export function createEntraTokens(
  settings: EntraSettings,
  { clock, onTrouble }: Pick<AdapterServices, "clock" | "onTrouble">,
): CredentialCache<EntraToken> {
  return new CredentialCache({
    load: () => requestToken(settings, clock),
    nowMs: () => clock.now(),
    clock,
    onLoadFailed: ({ message }) => onTrouble(message),
  });
}

/** The grant `client_credentials`. Source: "Microsoft identity platform and OAuth 2.0 client credentials". */
async function requestToken(settings: EntraSettings, clock: Clock): Promise<EntraToken> {
  const { authority, tenantId, clientId, clientSecret, scope } = settings;
  const form = {
    grant_type: "client_credentials",
    client_id: clientId,
    client_secret: clientSecret.reveal(),
    scope,
  };
  let response: Response;
  try {
    response = await fetch(`${authority}/${tenantId}/oauth2/v2.0/token`, {
      method: "POST",
      headers: { accept: "application/json" },
      body: new URLSearchParams(form),
      // The secret goes nowhere else.
      redirect: "error",
    });
  } catch (error) {
    throw noToken(`${authority} cannot be reached`, "check proxies and firewalls", error);
  }
  const body = parseObject(await readLimited(response)) ?? {};
  const token = nonEmpty(body["access_token"]);
  const seconds = countOf(body["expires_in"]);
  if (response.ok && token !== undefined && seconds !== undefined) {
    return { token: new Secret(token), expiresAtMs: clock.now() + seconds * 1_000 };
  }
  throw noToken(refusalIn(body, response.status), "check tenant_id, client_id and client_secret");
}

async function readLimited(response: Response): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  const body: AsyncIterable<Uint8Array> | [] = response.body ?? [];
  for await (const chunk of body) {
    bytes += chunk.length;
    if (bytes > mostBytes) throw noToken("the answer is too long", "check authority");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** `AADSTS7000215` and the like say what is wrong; the rest of the words names the application. */
function refusalIn(body: Readonly<Record<string, unknown>>, status: number): string {
  const number = /^AADSTS\d{4,9}\b/.exec(nonEmpty(body["error_description"]) ?? "")?.[0];
  const names = [cleanCode(body["error"]), number].filter((name) => name !== undefined);
  const known = number === undefined ? undefined : meanings[number];
  const about = known === undefined ? "" : `, ${known}`;
  return `status ${status}${names.length === 0 ? "" : ` ${names.join(" ")}`}${about}`;
}

const meanings: Readonly<Record<string, string>> = {
  AADSTS7000215: "the secret is wrong: set its value, not its id",
  AADSTS7000222: "the secret has expired",
  AADSTS700016: "the tenant has no such application",
  AADSTS90002: "there is no such tenant",
  AADSTS500011: "the tenant has no such scope",
  AADSTS70011: "the scope must end in /.default",
};

function noToken(what: string, advice: string, cause?: unknown): UpstreamFailure {
  const message = `Entra gave no token (${what}); ${advice} below entra of the upstream`;
  return new UpstreamFailure({ kind: "bad-credential", message }, { cause });
}
