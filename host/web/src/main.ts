import './styles/index.css';
import { mount } from 'svelte';
import { bestLanguage, useLanguage } from './i18n/index.svelte';
import { session } from './commands/session.svelte';
import { install } from './commands/install';
import App from './app/App.svelte';

// The socket opens while the words load and the framework mounts.
void session.start();
await useLanguage(bestLanguage(navigator.languages));
mount(App, { target: document.getElementById('app')! });
void install();
