/** Groups of nodes that reach each other (Tarjan's strongly connected components). */
export function findCircles(edges: ReadonlyMap<string, ReadonlySet<string>>): string[][] {
  const order = new Map<string, number>();
  const lowest = new Map<string, number>();
  const stack: string[] = [];
  const circles: string[][] = [];

  const visit = (node: string): void => {
    order.set(node, order.size);
    lowest.set(node, order.size - 1);
    stack.push(node);
    for (const next of edges.get(node) ?? []) {
      if (!order.has(next)) visit(next);
      if (stack.includes(next)) lower(node, lowest.get(next) ?? 0);
    }
    if (lowest.get(node) !== order.get(node)) return;
    const circle = stack.splice(stack.indexOf(node));
    if (circle.length > 1) circles.push(circle.toSorted());
  };
  const lower = (node: string, to: number): void => {
    lowest.set(node, Math.min(lowest.get(node) ?? to, to));
  };

  for (const node of edges.keys()) if (!order.has(node)) visit(node);
  return circles;
}
