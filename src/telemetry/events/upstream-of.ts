/** The upstream of a target, whose id is `upstream/model`. */
export function upstreamOf(target: string): string {
  return target.slice(0, target.indexOf("/"));
}
