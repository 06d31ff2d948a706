// Node, but with modules as the page gets them: effects run, which the build for a server leaves out.
import type { Environment } from 'vitest/runtime';

export default { name: 'page', viteEnvironment: 'client', setup: () => ({ teardown: () => undefined }) } satisfies Environment;
