import { whenKnown } from "../../domain/waiting/wait.ts";
import type { AdapterServices, UpstreamAdapter, UpstreamRequest } from "../adapter.ts";
import { createReadFailure } from "../shared/openai/read-failure.ts";
import type { OpenAiSettings } from "./config.ts";
import { createEntraTokens } from "./entra-token.ts";

type Authorizer = Pick<UpstreamAdapter, "authorize" | "whyNoCredential" | "readFailure">;
type Headers = UpstreamRequest["headers"];

/** Of every request, before it is authorized. */
export const jsonHeaders: Headers = {
  "content-type": "application/json",
  accept: "application/json, text/event-stream",
  "accept-encoding": "identity",
};

/** Adds the credential: a key, a token of Entra or nothing. */
export function createAuthorizer(
  settings: OpenAiSettings,
  services: Pick<AdapterServices, "clock" | "onTrouble">,
): Authorizer {
  const readFailure = createReadFailure(services.clock);
  const own = { ...keyHeader(settings), ...settings.headers };
  // One object for most requests, whose head is then written once.
  const authorized = { ...jsonHeaders, ...own };
  const headersOf = (headers: Headers): Headers =>
    headers === jsonHeaders ? authorized : { ...headers, ...own };
  if (settings.entra === undefined) {
    return {
      authorize: (request) => ({ ...request, headers: headersOf(request.headers) }),
      readFailure,
    };
  }
  const tokens = createEntraTokens(settings.entra, services);
  return {
    authorize: (request, ending) =>
      whenKnown(tokens.get(ending), ({ token }) => {
        const authorization = `Bearer ${token.reveal()}`;
        return { ...request, headers: { ...headersOf(request.headers), authorization } };
      }),
    whyNoCredential: () => tokens.whyNone(),
    readFailure(answer, { headers }) {
      const sent = headers["authorization"];
      if (answer.status === 401) tokens.refuse(({ token }) => sent === `Bearer ${token.reveal()}`);
      return readFailure(answer);
    },
  };
}

function keyHeader({ apiKey, apiKeyHeader }: OpenAiSettings): Headers {
  if (apiKey === undefined) return {};
  const value = apiKey.reveal();
  return apiKeyHeader === "api-key" ? { "api-key": value } : { authorization: `Bearer ${value}` };
}
