import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vitest/config';

const hub = process.env['DESKBELL_URL'] ?? 'http://127.0.0.1:6224';
const toHub = { target: hub, changeOrigin: true, headers: { origin: hub } };

export default defineConfig({
  plugins: [svelte()],
  base: './',
  build: {
    target: 'es2022',
    assetsInlineLimit: 0, // the page's policy allows no data: fonts
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 700,
  },
  server: { host: '127.0.0.1', proxy: { '/api': toHub, '/v1': toHub } },
  test: { include: ['tests/**/*.test.ts'], environment: './tests/pageenv.ts' },
});
