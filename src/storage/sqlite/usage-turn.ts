/** Between two steps of a report: lets the event loop do what else waits. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
