/** The segments of a path as it was sent; see `ListenOptions`. */
export type SentSegments = readonly string[] | undefined;

export type HandleSent = (request: Request, segments: SentSegments) => Response | Promise<Response>;

type Handle = (request: Request) => Response | Promise<Response>;

/** More than any path that is served has. */
const mostSegments = 12;

/**
 * The runtime (Bun 1.4) matches its routes against the path as it was sent, and normalises only
 * `request.url`. A route for each number of segments, with and without a trailing slash, therefore
 * reveals the original segments. Frequent `paths` have their own routes, which is faster.
 */
export function segmentRoutes(
  paths: readonly string[],
  handle: HandleSent,
): Record<string, Handle> {
  const routes: Record<string, Handle> = {};
  let shape = "";
  for (let count = 1; count <= mostSegments; count += 1) {
    shape += `/:s${count}`;
    for (const path of [shape, `${shape}/`]) {
      routes[path] = (request) => handle(request, parametersOf(request));
    }
  }
  for (const path of paths) {
    const segments = path.slice(1).split("/");
    routes[path] = (request) => handle(request, segments);
  }
  return routes;
}

/** The values are already decoded by the runtime. */
function parametersOf(request: Request): SentSegments {
  if (!("params" in request) || typeof request.params !== "object") return undefined;
  return Object.values(request.params ?? {}).map(String);
}
