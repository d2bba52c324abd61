// Far above any model's answer, yet small enough that sums of a window stay exact integers.
const largestTokenCount = 2 ** 40;

export function isTokenCount(tokens: number): boolean {
  return Number.isInteger(tokens) && tokens >= 0 && tokens <= largestTokenCount;
}
