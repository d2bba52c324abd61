/** The answers of a quoting upstream, by the name of the model. */
export const quotingModes = [
  "400",
  "401",
  "403",
  "404",
  "413",
  "422",
  "429",
  "500",
  "503",
  "html",
  "error-200",
  "junk-200",
  "error-in-stream",
  "junk-in-stream",
] as const;
export type QuotingMode = (typeof quotingModes)[number];

export interface QuotingUpstream extends AsyncDisposable {
  readonly origin: string;
  /** The number of requests so far. */
  readonly requests: number;
}

/**
 * An upstream of either kind that repeats its whole request, including credentials, in every text
 * of an error.
 */
export function startQuotingUpstream(): QuotingUpstream {
  let requests = 0;
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      requests += 1;
      const body = await request.text();
      const headers = JSON.stringify(Object.fromEntries(request.headers));
      const quote = `cannot take ${headers} with ${body}`;
      const mode = quotingModes.find((each) => `${request.url}${body}`.includes(`quote-${each}`));
      return answer(mode ?? "500", quote, request.url.includes("/v1/") ? "openai" : "bedrock");
    },
  });
  return {
    origin: `http://127.0.0.1:${server.port}`,
    get requests() {
      return requests;
    },
    [Symbol.asyncDispose]: () => server.stop(true),
  };
}

function answer(mode: QuotingMode, quote: string, kind: "openai" | "bedrock"): Response {
  const [first = ""] = quote.split("\n");
  const oneLine = first.replaceAll(/[^\x20-\x7e]/g, "").slice(0, 4_000);
  const headers = {
    "content-type": "application/json",
    "x-request-id": oneLine,
    "x-amzn-requestid": oneLine,
    "retry-after": oneLine,
    "x-amzn-errortype": kind === "bedrock" ? "ValidationException" : oneLine,
  };
  const error = errorObject(quote);
  const text = JSON.stringify(kind === "openai" ? { error } : error);
  switch (mode) {
    case "html":
      return new Response(`<html>${quote}</html>`, {
        status: 502,
        headers: { "content-type": "text/html" },
      });
    case "error-200":
      return new Response(text, { headers });
    case "junk-200":
      return new Response(quote, { headers });
    case "error-in-stream":
      return new Response(`data: ${chunk}\n\ndata: ${text}\n\n`, { headers: eventStream });
    case "junk-in-stream":
      return new Response(`data: ${chunk}\n\ndata: {"choices": ${quote}\n\n`, {
        headers: eventStream,
      });
    default:
      return new Response(text, { status: Number(mode), headers });
  }
}

const eventStream = { "content-type": "text/event-stream" };
const chunk = `{"choices":[{"index":0,"delta":{"content":"so far"}}]}`;

function errorObject(quote: string): object {
  return { message: quote, type: quote, code: quote, param: quote, detail: quote, __type: quote };
}
