// The part of the desk that tells of changes, and something that is on screen until it is left.
import { flushSync } from 'svelte';
import { vi } from 'vitest';

class Desk {
  rev = $state({ agents: 0, settings: 0, rules: 0, guardian: 0, pi: 0, map: 0 });
  noticed = vi.fn();
}
export const desk = new Desk();

export function onScreen(setUp: () => void): () => void {
  const leave = $effect.root(setUp);
  flushSync();
  return leave;
}
