/** The segments of a path as it was sent; see `ListenOptions`. */
export type SentSegments = readonly string[] | undefined;

export type HandleSent = (request: Request, segments: SentSegments) => Response | Promise<Response>;

type Handle = (request: Request) => Response | Promise<Response>;

/** One more than any path that is served has. */
const mostSegments = 12;

/**
 * The runtime (Bun 1.4) matches its routes with the path as it was sent, and normalises it only for
 * the address of the request. So a route for each number of segments, with and without a slash
 * behind, tells what they were. `paths` are those that are asked for most: a route of their own
 * spares them the look at each segment.
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

/** The runtime decodes them. */
function parametersOf(request: Request): SentSegments {
  if (!("params" in request) || typeof request.params !== "object") return undefined;
  return Object.values(request.params ?? {}).map(String);
}
