package contract

import "slices"

// Cases are those of the page, in its order.
func Cases() []Case {
	return slices.Concat(
		wordCases(), answerCases(), outageCases(), listCases(), keyCases(),
		acquireCases(), renewCases(), releaseCases(), leaseCases(),
		reserveCases(), reservePartsCases(), sealCases(), sealPartsCases(), objectCases(), discardCases(),
		beforeCases(), publishCases(), publishableCases(), historyCases(),
		resolveCases(), contentCases(), reportCases(),
		settingsCases(), revokeCases(), holdCases(), eraseCases(), refusalCases(),
		collectorCases(), scanCases(), verificationCases(), freezeCases(), openCases(), epochCases(),
	)
}
