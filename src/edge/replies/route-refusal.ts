import { GatewayError } from "../../domain/errors/gateway-error.ts";

export interface UnknownUrl {
  readonly method: string;
  readonly path: string;
  readonly listener: "data" | "admin";
}

export function unknownUrl({ method, path, listener }: UnknownUrl): GatewayError {
  const hint = listener === "admin" ? adminHint : dataHint(path);
  return new GatewayError("unknown_url", {
    message: `Unknown request URL: ${method} ${path.slice(0, 200)}. ${hint}`,
  });
}

export function wrongMethod(
  method: string,
  path: string,
  allowed: readonly string[],
): GatewayError {
  return new GatewayError("method_not_allowed", {
    message:
      `Not allowed to ${method} on ${path.slice(0, 200)}. ` +
      "(HINT: Perhaps you meant to use a different HTTP method?)",
    headers: { allow: allowed.join(", ") },
  });
}

const adminHint =
  "Please check the URL for typos; this is the admin API, and GET /admin/v1/docs describes it.";

function dataHint(path: string): string {
  const doubled =
    /^(.*?)(\/chat\/completions|\/embeddings)\/+(?:v1\/+)?(?:chat|embeddings|models)/.exec(path);
  return doubled === null
    ? "Please check the URL for typos; the endpoints are POST /v1/chat/completions, " +
        "POST /v1/embeddings and GET /v1/models."
    : `The base URL must end before '${doubled[2]}': clients add that part themselves.`;
}
