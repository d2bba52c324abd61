/** The path of a request as it was sent; see `ListenOptions`. */
export interface SentPath {
  readonly segments: readonly string[];
  /** Set for frequent paths, so that the request's URL does not have to be parsed. */
  readonly frequent?: string;
}

export type HandleSent = (
  request: Request,
  sent: SentPath | undefined,
) => Response | Promise<Response>;

type Handle = (request: Request) => Response | Promise<Response>;

/** More segments than any route has. */
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
    const sent = { segments: path.slice(1).split("/"), frequent: path };
    routes[path] = (request) => handle(request, sent);
  }
  return routes;
}

/** The values are already decoded by the runtime. */
function parametersOf(request: Request): SentPath | undefined {
  if (!("params" in request) || typeof request.params !== "object") return undefined;
  return { segments: Object.values(request.params ?? {}).map(String) };
}
