import { jsonReply, type Reply } from "../frame.ts";
import type { Fault, FaultMode } from "./fault-mode.ts";

const page =
  "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n" +
  "<center><h1>502 Bad Gateway</h1></center>\r\n</body>\r\n</html>\r\n";

/** The reply of a proxy in front of a provider, equal on all wires; undefined for other faults. */
export function oddReply({ mode }: Fault): Reply | undefined {
  return oddReplies[mode]?.();
}

const oddReplies: Readonly<Partial<Record<FaultMode, () => Reply>>> = {
  "html-502": () => jsonReply(page, { status: 502, headers: { "content-type": "text/html" } }),
  "non-sse-200": () => jsonReply(page, { headers: { "content-type": "text/html; charset=utf-8" } }),
  redirect: () => jsonReply("", { status: 307, headers: { location: "/redirected" } }),
};
