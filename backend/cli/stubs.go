package cli

import "github.com/spf13/cobra"

func (a *app) validateCommand() *cobra.Command { return &cobra.Command{Use: "validate"} }
func (a *app) verifyCommand() *cobra.Command   { return &cobra.Command{Use: "verify"} }
func (a *app) doctorCommand() *cobra.Command   { return &cobra.Command{Use: "doctor"} }
