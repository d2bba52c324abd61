/** Between two steps of long work: lets the event loop do what else waits. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
