import { expect, test } from "bun:test";
import { pickNamed } from "../report/pick-named.ts";
import { faults } from "../doubles/faults.ts";
import { placeCells } from "./cell-models.ts";
import { allCells, type Cell } from "./cells.ts";

test("the grid has every possible combination of fault, rest, wire and kind of call once", () => {
  const cells = allCells();
  expect(new Set(cells.map(({ name }) => name)).size).toBe(cells.length);
  const countOf = (test: (cell: Cell) => boolean): number => cells.filter(test).length;
  expect(countOf(({ left }) => left !== "equal")).toBe(faults.length * 2 * (3 + 3 + 1));
  expect(countOf(({ left }) => left === "equal")).toBe(faults.length);
  expect(countOf(({ kind, left }) => kind === "embeddings" && left !== "second")).toBe(0);
});

test("a filter selects cells by whole parts of their names; several filters add up", () => {
  const names = (filters: readonly string[]): number => pickNamed(allCells(), filters).length;
  expect(names([])).toBe(allCells().length);
  expect(names(["throttle,fallback"])).toBe(4);
  expect(names(["throttle/fallback", "embeddings,half"])).toBe(6);
  expect(names(["half,half,half/fallback/openai/whole"])).toBe(1);
  expect(() => names(["throttle", "stal"])).toThrow("no cell has 'stal' in its name");
});

test("cells of one wire and kind share a control, and no other upstream", () => {
  const cells = pickNamed(allCells(), ["both,throttle"]);
  const models = placeCells([...cells, ...cells]);
  expect(models.controls).toHaveLength(4);
  // A primary, a second and a fallback for each cell.
  expect(models.upstreams).toHaveLength(cells.length * 2 * 3 + 4);
  expect(new Set(models.upstreams).size).toBe(models.upstreams.length);
});
